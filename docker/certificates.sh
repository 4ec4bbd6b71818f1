#!/bin/sh
# certificates.sh FOLDER [DAYS]: ca.pem, node.pem and node-key.pem for scheduler, workers and drivers of one cluster.
#
# The authority signs this one certificate and its key is thrown away, so whoever may read the folder is in the cluster
# and nobody else can be let in. Files that hold for another day are left; then all are made anew, for DAYS (7).
set -eu
umask 077

folder=${1:?usage: certificates.sh FOLDER [DAYS]}
days=${2:-7}
case $days in
'' | *[!0-9]* | 0 | 1 | ???*)
    echo "certificates.sh: DAYS must be a whole number from 2 to 99, got '$days'" >&2
    exit 2
    ;;
esac

good() {
    [ -f ca.pem ] && [ -f node.pem ] && [ -f node-key.pem ] &&
        openssl x509 -in node.pem -noout -checkend 86400 >/dev/null &&
        openssl verify -CAfile ca.pem node.pem >/dev/null 2>&1 &&
        [ "$(openssl x509 -in node.pem -noout -pubkey)" = "$(openssl pkey -in node-key.pem -pubout 2>/dev/null)" ]
}

mkdir -p "$folder"
cd "$folder"
if good; then
    echo "certificates in $folder: kept, $(openssl x509 -in node.pem -noout -enddate)"
    exit 0
fi

also=
[ ! -f node.pem ] || also='; start again what runs with the old ones'
new=$(mktemp -d) # not in the folder: the authority's key lies there for a moment
trap 'rm -rf "$new"' EXIT
trap 'exit 143' HUP INT TERM # which end a shell without its EXIT
curve="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc"
# shellcheck disable=SC2086 # words of their own
openssl req -x509 $curve -keyout "$new/ca-key.pem" -out "$new/ca.pem" -days "$days" -subj "/CN=edgemill authority" \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign 2>/dev/null
# shellcheck disable=SC2086
openssl req $curve -keyout "$new/node-key.pem" -out "$new/node.csr" -subj "/CN=edgemill node" 2>/dev/null
cat >"$new/extensions" <<EOF
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
EOF
openssl x509 -req -in "$new/node.csr" -CA "$new/ca.pem" -CAkey "$new/ca-key.pem" -days "$days" \
    -extfile "$new/extensions" -out "$new/node.pem" 2>/dev/null
mv "$new/ca.pem" "$new/node.pem" "$new/node-key.pem" .
good || { echo "certificates.sh: openssl made no certificates that go together in $folder" >&2; exit 1; }
echo "certificates in $folder: made, $(openssl x509 -in node.pem -noout -enddate)$also"
