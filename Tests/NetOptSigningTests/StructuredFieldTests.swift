import Testing

@testable import NetOptSigning

/// The examples of RFC 9651, and input on which parsing must fail.
@Suite struct StructuredFieldTests {
  /// The text of an item, the value that the parser must return, and the text that the serializer must write.
  private static let items: [(String, BareItem, String)] = [
    ("42", .integer(42), "42"), ("-0", .integer(0), "0"), ("0042", .integer(42), "42"),
    ("999999999999999", .integer(999_999_999_999_999), "999999999999999"),
    ("4.5", .decimal(thousandths: 4500), "4.5"), ("-1.0", .decimal(thousandths: -1000), "-1.0"),
    ("1.005", .decimal(thousandths: 1005), "1.005"), ("0.10", .decimal(thousandths: 100), "0.1"),
    (#""hello world""#, .string("hello world"), #""hello world""#),
    (#""a\"b\\c""#, .string(#"a"b\c"#), #""a\"b\\c""#), ("foo123/456", .token("foo123/456"), "foo123/456"),
    ("*a:b", .token("*a:b"), "*a:b"), (":aGVsbG8=:", .bytes(Array("hello".utf8)), ":aGVsbG8=:"),
    (":aGVsbG8:", .bytes(Array("hello".utf8)), ":aGVsbG8=:"), ("::", .bytes([]), "::"),
    ("?1", .boolean(true), "?1"), ("?0", .boolean(false), "?0"),
    ("@1659578233", .date(1_659_578_233), "@1659578233"),
    ("@-1", .date(-1), "@-1"), (#"%"f%c3%bc%25""#, .displayString("fü%"), #"%"f%c3%bc%25""#),
    ("  7  ", .integer(7), "7"),
  ]

  @Test("items are parsed, and serialized in their canonical form", arguments: items.indices)
  func itemsAreReadAndWritten(_ index: Int) throws {
    let (text, value, written) = Self.items[index]
    let item = try StructuredFieldParser.item(text.utf8)
    #expect(item.value == value, "\(text)")
    #expect(try StructuredFieldSerializer.item(item) == written)
  }

  private static let badItems = [
    "", "-", "--1", "1.", ".5", "1.2345", "1234567890123456", "1234567890123.1", "1 2", "\"a", "\"\u{e9}\"",
    "\"\\a\"", "\"\n\"", "?2", "?", ":a:", ":a===:", ":YQ=:", ":*:", "@1.5", "@", "%a", "%\"%C3%BC\"",
    "%\"%c3\"", "%\"%c\"",
    "(1)", "a b", ";a", "1;A", "1;", "1;a=", "{", "\t1",
  ]

  @Test("the parser refuses invalid items", arguments: badItems)
  func invalidItems(_ text: String) {
    #expect(throws: StructuredFieldFault.self) { try StructuredFieldParser.item(text.utf8) }
  }

  /// The text of a list, and the text that the serializer must write for the parsed list. `nil` means that
  /// the parser must refuse the list.
  private static let lists: [(String, String?)] = [
    ("sugar, tea, rum", "sugar, tea, rum"), ("", ""), ("a,b", "a, b"), ("a \t, \tb", "a, b"),
    (#"("foo" "bar"), ("baz"), ("bat" "one"), ()"#, #"("foo" "bar"), ("baz"), ("bat" "one"), ()"#),
    (#"("foo"; a=1;b=2);lvl=5, ("bar" "baz");lvl=1"#, #"("foo";a=1;b=2);lvl=5, ("bar" "baz");lvl=1"#),
    ("abc;a=1;b=2; cde_456, (ghi;jk=4 l);q=\"9\";r=w", "abc;a=1;b=2;cde_456, (ghi;jk=4 l);q=\"9\";r=w"),
    ("1;a=1;b=2;a=3", "1;a=3;b=2"), ("( a  b )", "(a b)"), ("a,", nil), (",a", nil), ("a b", nil),
    ("(a", nil), ("(a,b)", nil),
    ("(a)b", nil), ("a,\t", nil), ("((a))", nil), ("a;b=(c)", nil), ("(a;b c", nil), ("(\"a\"\"b\")", nil),
  ]

  @Test("lists are parsed and serialized, and invalid lists are refused", arguments: lists.indices)
  func listsAreReadAndWritten(_ index: Int) throws {
    let (text, written) = Self.lists[index]
    let list = try? StructuredFieldParser.list(text.utf8)
    #expect(try list.map { (list) throws in try StructuredFieldSerializer.list(list) } == written, "\(text)")
  }

  /// The text of a dictionary, and the text that the serializer must write for the parsed dictionary. `nil`
  /// means that the parser must refuse the dictionary.
  private static let dictionaries: [(String, String?)] = [
    (#"en="Applepie", da=:w4ZibGV0w6ZydGU=:"#, #"en="Applepie", da=:w4ZibGV0w6ZydGU=:"#),
    ("a=?0, b, c; foo=bar", "a=?0, b, c;foo=bar"),
    ("rating=1.5, feelings=(joy sadness)", "rating=1.5, feelings=(joy sadness)"),
    ("a=(1 2), b=3, c=4;aa=bb, d=(5 6);valid", "a=(1 2), b=3, c=4;aa=bb, d=(5 6);valid"),
    ("a=1,b=2,a=3", "a=3, b=2"), ("a=?1", "a"), ("*x.-_1=1", "*x.-_1=1"), ("", ""), ("A=1", nil),
    ("a=1,", nil), ("a==1", nil),
    ("=1", nil), ("a=", nil), ("a=1 b=2", nil), ("1=a", nil),
  ]

  @Test(
    "dictionaries are parsed and serialized, and invalid ones are refused",
    arguments: dictionaries.indices)
  func dictionariesAreReadAndWritten(_ index: Int) throws {
    let (text, written) = Self.dictionaries[index]
    let dictionary = try? StructuredFieldParser.dictionary(text.utf8)
    #expect(
      try dictionary.map { (value) throws in try StructuredFieldSerializer.dictionary(value) } == written,
      "\(text)")
  }

  @Test("the serializer refuses values that no structured field can have")
  func invalidValues() {
    for value: BareItem in [
      .integer(1_000_000_000_000_000), .decimal(thousandths: 1_000_000_000_000_000), .string("é"),
      .string("\n"),
      .token(""), .token("1a"), .token("a b"), .date(1_000_000_000_000_000),
    ] {
      #expect(throws: StructuredFieldFault.self) { try StructuredFieldSerializer.item(StructuredItem(value)) }
    }
    var parameters = Parameters()
    parameters["A"] = .integer(1)
    #expect(throws: StructuredFieldFault.self) {
      try StructuredFieldSerializer.item(StructuredItem(.integer(1), parameters))
    }
  }
}
