#!/bin/sh
# Images made for heat-cfntools find its commands under their AWS names.
if command -v cfn-create-aws-symlinks >/dev/null 2>&1; then
    cfn-create-aws-symlinks
fi
exit 0
