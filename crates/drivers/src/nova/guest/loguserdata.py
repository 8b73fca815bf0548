#!/bin/sh
# Runs the user data, logs its output, and creates a marker file on success.
folder=/var/lib/heat-cfntools
log=/var/log/heat-provision.log
touch "$log" && chmod 600 "$log"
chmod 700 "$folder/cfn-userdata"
echo "Provision began: $(date)" >>"$log"
if [ -s "$folder/cfn-userdata" ]; then
    "$folder/cfn-userdata" >>"$log" 2>&1
    code=$?
else
    echo "There is no user data to run." >>"$log"
    code=0
fi
# 126 and 127: not executable, which is not a failure of the server.
if [ "$code" -eq 126 ] || [ "$code" -eq 127 ]; then
    echo "User data is not executable." >>"$log"
    code=0
fi
echo "Provision done: $(date)" >>"$log"
if [ "$code" -ne 0 ]; then
    echo "Provision failed with exit code $code" >>"$log"
    exit "$code"
fi
touch "$folder/provision-finished"
