//! YAML 1.1 and JSON text to values, exactly as PyYAML and Heat read it.
