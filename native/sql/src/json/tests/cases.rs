use crate::json::*;

fn keys(keys: &[&str]) -> Vec<Step> {
    let step = |key: &&str| match key.parse() {
        Ok(index) => Step::Index(index),
        Err(_) => Step::Key(key.as_bytes().into()),
    };
    keys.iter().map(step).collect()
}

fn shown(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// What a function that writes has written.
fn written(write: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<String> {
    let mut out = b"before".to_vec();
    let valid = write(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(valid || text == "before");
    valid.then(|| text["before".len()..].to_string())
}

fn get(text: &str, path: &[&str]) -> Option<String> {
    shown(value(text.as_bytes(), &keys(path), &mut Vec::new()))
}

fn text(json: &str, path: &[&str]) -> Option<String> {
    written(|out| as_text(json.as_bytes(), &keys(path), &mut Vec::new(), out))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_string())
}

#[test]
fn values_are_found_by_keys_and_indices() {
    let json = r#" { "a" : [ 1 , { "b" : "x" } ] , "" : true, "n": null } "#;
    assert_eq!(get(json, &["a", "0"]), some("1"));
    assert_eq!(get(json, &["a", "1", "b"]), some("\"x\""));
    assert_eq!(get(json, &["a"]), some("[ 1 , { \"b\" : \"x\" } ]"));
    assert_eq!(get(json, &[""]), some("true"));
    assert_eq!(get(json, &[]), some(json.trim()));
    for nowhere in [&["b"][..], &["a", "2"], &["a", "-1"], &["a", "b"], &["", "x"], &["0"]] {
        assert_eq!(get(json, nowhere), None);
        assert_eq!(contains(json.as_bytes(), &keys(nowhere), &mut Vec::new()), Some(false));
    }
    assert_eq!(contains(json.as_bytes(), &keys(&["n"]), &mut Vec::new()), Some(true));
}

#[test]
fn null_is_null_except_as_json() {
    let json = br#"{"n": null}"#;
    assert_eq!(value(json, &keys(&["n"]), &mut Vec::new()), None);
    assert_eq!(text(r#"{"n": null}"#, &["n"]), None);
    assert_eq!(raw(json, &keys(&["n"]), &mut Vec::new()), Some(&b"null"[..]));
}

#[test]
fn of_two_equal_keys_the_first_counts_by_keys_and_the_last_by_path() {
    let json = r#"{"a": 1, "a": {"b": 2}, "a": {"b": 3}}"#;
    assert_eq!(get(json, &["a"]), some("1"));
    assert_eq!(get(json, &["a", "b"]), None);
    let path = Path::read("$.a.b").unwrap();
    assert_eq!(written(|out| first(json.as_bytes(), &path, out)), some("3"));
}

#[test]
fn by_keys_nothing_behind_the_value_is_read() {
    assert_eq!(get(r#"{"a": 1, oh"#, &["a"]), some("1"));
    assert_eq!(get(r#"{oh, "a": 1}"#, &["a"]), None);
    assert_eq!(get(r#"{"b": [1,, 2], "a": 1}"#, &["a"]), None);
    for wrong in
        [r#"{"a": 1, oh"#, r#"{"a": 1} x"#, "", " ", "{", "[1", "{\"a\"}", "tru", "+1", "01", "1.", ".5", "1e", "-", "'a'", "\"\n\"", "\"a"]
    {
        let path = Path::read("$").unwrap();
        assert_eq!(written(|out| first(wrong.as_bytes(), &path, out)), None, "{wrong}");
        assert!(!query(wrong.as_bytes(), &path, |_| panic!("{wrong}")));
    }
}

#[test]
fn strings_are_read_with_their_escapes() {
    assert_eq!(text(r#"{"a\u0062\n": "\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00é😀"}"#, &["ab\n"]), some("\"\\/\u{8}\u{c}\n\r\té😀é😀"));
    assert_eq!(text(r#""12345678\n12345678""#, &[]), some("12345678\n12345678"));
    for half in [r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\ud83d\n""#] {
        assert_eq!(text(half, &[]), None);
        assert_eq!(get(half, &[]), some(half));
    }
    for wrong in [r#""\x""#, r#""\u12g4""#, r#""\u12"#, "\"\\"] {
        assert_eq!(get(wrong, &[]), None);
    }
}

#[test]
fn a_key_that_is_no_text_is_passed() {
    assert_eq!(get(r#"{"\ud83d": 1, "a": 2}"#, &["a"]), some("2"));
}

#[test]
fn numbers_have_their_type() {
    let int_of = |json: &str| int(json.as_bytes(), &[], &mut Vec::new());
    let float_of = |json: &str| float(json.as_bytes(), &[], &mut Vec::new());
    assert_eq!(int_of("-9223372036854775808"), Some(i64::MIN));
    assert_eq!(int_of("9223372036854775807"), Some(i64::MAX));
    for none in ["9223372036854775808", "1.0", "1e2", "\"1\"", "true", "null", "[1]", "-"] {
        assert_eq!(int_of(none), None, "{none}");
    }
    assert_eq!(float_of("9223372036854775808"), Some(9223372036854775808.0));
    assert_eq!(float_of("-0"), Some(0.0));
    assert_eq!(float_of("1.7976931348623157e308"), Some(f64::MAX));
    assert_eq!(float_of("1e-400"), Some(0.0));
    for none in ["1e400", "\"1\"", "NaN", "Infinity", "inf", "nan", "null"] {
        assert_eq!(float_of(none), None, "{none}");
    }
    assert_eq!(text("123456789012345678901234567890.10", &[]), some("123456789012345678901234567890.10"));
    let bool_of = |json: &str| boolean(json.as_bytes(), &[], &mut Vec::new());
    assert_eq!([bool_of("true"), bool_of(" false "), bool_of("1"), bool_of("\"true\"")], [Some(true), Some(false), None, None]);
}

#[test]
fn lists_and_lengths() {
    let items_of = |json: &str| {
        let mut found = Vec::new();
        array(json.as_bytes(), &[], &mut Vec::new(), |item| found.push(String::from_utf8(item.to_vec()).unwrap())).then_some(found)
    };
    assert_eq!(items_of(r#"[1, "a" ,[2, 3],{}]"#).unwrap(), ["1", "\"a\"", "[2, 3]", "{}"]);
    assert_eq!(items_of("[]"), Some(vec![]));
    assert_eq!([items_of("{}"), items_of("[1"), items_of("1")], [None, None, None]);
    let keys_in = |json: &str| {
        let mut found = Vec::new();
        keys_of(json.as_bytes(), &[], &mut Vec::new(), |key| found.push(String::from_utf8(key.to_vec()).unwrap())).then_some(found)
    };
    assert_eq!(keys_in(r#"{"b": 1, "a\t": {"c": 2}, "b": 3}"#).unwrap(), ["b", "a\t", "b"]);
    assert_eq!([keys_in("[]"), keys_in("{\"a\": 1"), keys_in(r#"{"a": 1, "\ud800": 2}"#)], [None, None, None]);
    let length_of = |json: &str| length(json.as_bytes(), &[], &mut Vec::new());
    assert_eq!([length_of("[1, [2, 3]]"), length_of(r#"{"a": {"b": 1}}"#), length_of("[]")], [Some(2), Some(1), Some(0)]);
    assert_eq!([length_of("\"abc\""), length_of("[1,"), length_of("[1,]")], [None, None, None]);
}

#[test]
fn deep_values_need_no_stack() {
    let depth = 1_000_000;
    let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(get(&format!("{{\"deep\": {deep}, \"a\": 1}}"), &["a"]), some("1"));
    assert_eq!(get(&deep, &[]).unwrap().len(), deep.len());
    assert_eq!(get(&deep[1..], &["a"]), None);
    let objects = format!("{}1{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
    assert_eq!(get(&objects, &[]).unwrap().len(), objects.len());
    let crossed = format!("{}1{}", "{\"a\":[".repeat(100), "}]".repeat(100));
    assert_eq!(get(&crossed, &[]), None);
}

#[test]
fn paths_lead_to_all_their_values() {
    let json = r#"{"a": [ {"b": 1}, {"b": "x \n" }, 3 ], "it's": {"c d": [true]}, "\"": 4}"#;
    let all = |path: &str| {
        let mut found = Vec::new();
        let path = Path::read(path).unwrap();
        assert!(query(json.as_bytes(), &path, |value| {
            let mut out = Vec::new();
            append_compact(value, &mut out);
            found.push(String::from_utf8(out).unwrap());
        }));
        found
    };
    assert_eq!(all("$.a[*].b"), ["1", r#""x \n""#]);
    assert_eq!(all("$.a"), [r#"[{"b":1},{"b":"x \n"},3]"#]);
    assert_eq!(all("$['a'][-1]"), ["3"]);
    assert_eq!(all("$.a[-3].b"), ["1"]);
    assert_eq!(all("$.a[ 1 ].*"), [r#""x \n""#]);
    assert_eq!(all(r#"$['it\'s']["c d"][0]"#), ["true"]);
    assert_eq!(all("$['\"']"), ["4"]);
    assert_eq!(all(r#"$["it's"].*[*]"#), ["true"]);
    assert!(all("$.a[3]").is_empty() && all("$.a[-4]").is_empty() && all("$.b").is_empty() && all("$[0]").is_empty());
    let path = Path::read("$.a[*].b").unwrap();
    assert_eq!(written(|out| first_string(json.as_bytes(), &path, out)), None);
    let path = Path::read("$.a[1].b").unwrap();
    assert_eq!(written(|out| first_string(json.as_bytes(), &path, out)), some("x \n"));
}

#[test]
fn other_paths_are_refused() {
    for (path, at) in [
        ("", 1),
        ("a", 1),
        ("$.", 3),
        ("$.1a", 3),
        ("$..a", 2),
        ("$.a..b", 4),
        ("$[", 2),
        ("$['a'", 2),
        ("$[01]", 2),
        ("$[-0]", 2),
        ("$[1:2]", 2),
        ("$[0,1]", 2),
        ("$.é[?@.a > 1]", 4),
        ("$a", 2),
    ] {
        let error = Path::read(path).unwrap_err();
        assert!(error.contains(&format!("at its character {at}: ")), "{error}");
    }
}
