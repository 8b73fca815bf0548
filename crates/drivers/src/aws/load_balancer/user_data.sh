#!/bin/bash

# $1: 0 for success; $2: the reason.
signal() {
    /opt/aws/bin/cfn-signal -e "$1" -r "$2" '$HANDLE'
}

if ! /opt/aws/bin/cfn-init -s $STACK -r LB_instance; then
    signal 1 'The load balancer could not be set up'
    exit 1
fi

# SELinux: HAProxy may connect to every port.
setsebool haproxy_connect_any 1

crontab /tmp/cfn-hup-crontab.txt
if systemctl reload-or-restart haproxy.service; then
    signal 0 'The load balancer is running'
else
    signal 1 'HAProxy does not start'
fi
