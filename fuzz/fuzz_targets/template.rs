//! Any text is a template or is refused; a template is checked, read and resolved as far as it goes.
#![no_main]

use std::sync::Arc;

use kiln_template::constraint::AcceptAll;
use kiln_template::{Bound, Files, Template, Unbuilt, source};
use kiln_value::{Diagnostic, Map};
use libfuzzer_sys::fuzz_target;

fn read(input: &str) -> Result<(), Diagnostic> {
    let document = source::parse(input, source::ROOT, source::MAX_TEMPLATE_SIZE)?;
    let template = Template::from_value(document.value)?;
    let parameters = template.parameters(None, &Map::new(), &Map::new())?;
    _ = template.validate_sections();
    let bound = Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(Files::default()));
    for error in bound.validate(&AcceptAll, false) {
        assert!(!error.class.name().is_empty(), "{error:?}");
    }
    let definitions = bound.definitions()?;
    let scope = Unbuilt::new(&bound, definitions.keys().map(String::as_str));
    for definition in definitions.values() {
        drop((definition.dependencies(&scope), definition.attributes(&scope), definition.validate(&scope)));
        drop((definition.properties.value(&scope), definition.metadata.value(&scope)));
    }
    for output in bound.outputs()?.values() {
        drop((output.validate(&scope), output.value.value(&scope)));
    }
    Ok(())
}

fuzz_target!(|input: &str| {
    if let Err(error) = read(input) {
        assert!(!error.class.name().is_empty(), "{error:?}");
    }
});
