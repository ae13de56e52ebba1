//! Against serde_json: random documents, and texts that are nearly ones.

use crate::json::*;
use proptest::prelude::*;
use serde_json::Value;

fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[ab\"\\\\é\u{1}]{0,2}", inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A document as text, with spaces, and with some characters of strings as escapes.
fn written(value: &Value, spaces: &str, escaped: bool) -> String {
    let quoted = |text: &str| match escaped {
        true => {
            let mut units = [0; 2];
            let letters = text.chars().map(|c| c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
            format!("\"{}\"", letters.collect::<String>())
        }
        false => Value::from(text).to_string(),
    };
    let list = |open, items: Vec<String>, close| format!("{open}{spaces}{}{spaces}{close}", items.join(&format!("{spaces},{spaces}")));
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => list('[', items.iter().map(|item| written(item, spaces, escaped)).collect(), ']'),
        Value::Object(map) => {
            let item = |(key, value): (&String, &Value)| format!("{}{spaces}:{spaces}{}", quoted(key), written(value, spaces, escaped));
            list('{', map.iter().map(item).collect(), '}')
        }
        other => other.to_string(),
    }
}

/// Each value of a document, with its path.
fn all(value: &Value, path: &mut Vec<Step>, each: &mut dyn FnMut(&[Step], &Value)) {
    each(path, value);
    let inner: Vec<(Step, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(i, item)| (Step::Index(i as i64), item)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (Step::Key(key.as_bytes().into()), value)).collect(),
        _ => Vec::new(),
    };
    for (step, inner) in inner {
        path.push(step);
        all(inner, path, each);
        path.pop();
    }
}

fn as_path(steps: &[Step]) -> Path {
    let segment = |step: &Step| match step {
        Step::Index(index) => format!("[{index}]"),
        Step::Key(key) => format!("[{}]", Value::from(std::str::from_utf8(key).unwrap())),
    };
    Path::read(&format!("${}", steps.iter().map(segment).collect::<String>())).unwrap()
}

proptest! {
    #[test]
    fn each_value_is_found(document in document(), spaces in "[ \t\n\r]{0,2}", escaped: bool) {
        let text = written(&document, &spaces, escaped);
        let text = text.as_bytes();
        all(&document, &mut Vec::new(), &mut |path, expected| {
            let scratch = &mut Vec::new();
            let found: Value = serde_json::from_slice(raw(text, path, scratch).unwrap()).unwrap();
            assert_eq!(&found, expected);
            assert_eq!(value(text, path, scratch).is_none(), expected.is_null());
            assert_eq!(int(text, path, scratch), expected.as_i64());
            assert_eq!(float(text, path, scratch), expected.as_f64());
            assert_eq!(boolean(text, path, scratch), expected.as_bool());
            assert_eq!(contains(text, path, scratch), Some(true));
            let lengths = expected.as_array().map(Vec::len).or(expected.as_object().map(|map| map.len()));
            assert_eq!(length(text, path, scratch), lengths.map(|length| length as u64));
            let mut out = Vec::new();
            assert_eq!(string(text, path, scratch, &mut out).then_some(&out[..]), expected.as_str().map(str::as_bytes));
            let mut items: Vec<Value> = Vec::new();
            let is_array = array(text, path, scratch, |item| items.push(serde_json::from_slice(item).unwrap()));
            assert_eq!(is_array.then_some(&items), expected.as_array());
            let mut keys = Vec::new();
            let is_object = keys_of(text, path, scratch, |key| keys.push(String::from_utf8(key.to_vec()).unwrap()));
            assert_eq!(is_object.then_some(keys), expected.as_object().map(|map| map.keys().cloned().collect()));
            let mut compact = Vec::new();
            assert!(first(text, &as_path(path), &mut compact));
            if !escaped {
                assert_eq!(String::from_utf8(compact).unwrap(), expected.to_string());
            }
        });
    }

    /// Bytes of a document are left out, doubled or replaced: the same texts are JSON.
    #[test]
    fn the_same_texts_are_json(
        document in document(), spaces in "[ \n]{0,1}", edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3, "[\\[\\]{},:\"\\\\eu0-9. -]"), 0..3)
    ) {
        let mut text: Vec<char> = written(&document, &spaces, false).chars().collect();
        for (place, edit, letter) in edits {
            let place = place.index(text.len());
            match edit {
                0 => text[place] = letter.chars().next().unwrap(),
                1 => text.insert(place, text[place]),
                _ if text.len() > 1 => { text.remove(place); }
                _ => {}
            }
        }
        let text: String = text.into_iter().collect();
        let accepted = query(text.as_bytes(), &Path::read("$").unwrap(), |_| ());
        match serde_json::from_str::<Value>(&text) {
            Ok(_) => prop_assert!(accepted, "{text}"),
            // It cannot hold these two, which are JSON.
            Err(error) => prop_assert!(!accepted || error.to_string().contains("number out of range") || text.contains("\\u"), "{text}: {error}"),
        }
    }
}
