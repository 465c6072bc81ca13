//! What a job was begun with: whoever goes on with it must bring the same.

use serde_json::{Map, Value, json};

use crate::error::Change;

/// Facts by name, as JSON.
pub(crate) type Facts = Map<String, Value>;

/// What differs, with the names of all that lead to it.
pub(crate) fn changes(was: &Facts, is: &Facts) -> Vec<Change> {
    let mut out = Vec::new();
    compare("", &Value::Object(was.clone()), &Value::Object(is.clone()), &mut out);
    out
}

fn compare(name: &str, was: &Value, is: &Value, out: &mut Vec<Change>) {
    if was == is {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (was, is) {
        let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let none = Value::Null;
            let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            compare(&inner, a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none), out);
        }
        return;
    }
    out.push(Change { what: name.into(), was: short(was), is: short(is) });
}

/// Hashes and lists are cut: they are only there to differ.
fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(24) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text,
    }
}

/// What the parts and the model are set to, without what changes no answer.
pub(crate) fn settings(config: &impl serde::Serialize, model: &impl serde::Serialize) -> Value {
    let (mut settings, mut model) = (json!(config), json!(model));
    if let (Some(all), Some(fields)) = (settings.as_object_mut(), model.as_object_mut()) {
        fields.remove("micro_batch");
        all.insert("model".into(), model);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_down_to_the_leaf() {
        let facts = |budget: u32, model: &str| -> Facts {
            let all = json!({ "model": model, "settings": { "budget": budget, "seed": 0 } });
            all.as_object().unwrap().clone()
        };
        assert_eq!(changes(&facts(8, "a"), &facts(8, "a")), []);
        let found = changes(&facts(8, "a"), &facts(9, &"b".repeat(64)));
        let names: Vec<&str> = found.iter().map(|c| c.what.as_str()).collect();
        assert_eq!(names, ["model", "settings.budget"]);
        assert_eq!(found[1].to_string(), "another settings.budget (8, now 9)");
        assert_eq!(found[0].is, "b".repeat(24) + "..");
        let less = changes(&facts(8, "a"), &Facts::new());
        assert_eq!(less[0].is, "none");
    }
}
