"""How messages are worded for the person who reads them: settings by what that person would type, and suggestions."""
