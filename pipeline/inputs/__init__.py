"""Files, frames and graphs of other libraries, and lists of paths, as the input of a run.

`input_object` is the protocol of such inputs, and opens files. `frame_input` writes the edges of a frame or graph to
files for the time of a run. A module here imports an optional library only when a caller passes an object of it. May
import `tasks`, `settings`, and `cluster` for frames of Dask.
"""
