"""Aodh's notifier without its message bus: `aodh_notifier.py FILE` with alarms as JSON in the standard input.

Runs with the Python of the virtual environment of Aodh (alarms.py); FILE is its configuration. The alarms are what the
evaluator sends; the notifiers are those that the service loads.
"""
import json
import sys

from aodh import service
from aodh.notifier import AlarmEndpoint, AlarmNotifierService
from stevedore import extension

conf = service.prepare_service([], config_files=[sys.argv[1]], with_gmr=False)
notifiers = extension.ExtensionManager(AlarmNotifierService.NOTIFIER_EXTENSIONS_NAMESPACE, invoke_on_load=True,
                                       invoke_args=(conf,))
AlarmEndpoint(notifiers).sample([{'payload': alarm} for alarm in json.load(sys.stdin)])
