#!/bin/sh
# Images for heat-cfntools require links to its commands with their AWS names.
if command -v cfn-create-aws-symlinks >/dev/null 2>&1; then
    cfn-create-aws-symlinks
fi
exit 0
