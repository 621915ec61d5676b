import NetOptCore
import Testing

@Suite struct HeaderFieldsTests {
  private let fields: HeaderFields = ["Accept": "a", "Set-Cookie": "x=1", "ACCEPT": "b", "set-cookie": "y=2"]

  @Test("fields keep their order and repeated names")
  func orderAndRepeats() {
    #expect(fields.map(\.name) == ["Accept", "Set-Cookie", "ACCEPT", "set-cookie"])
    #expect(fields.count == 4)
    #expect(fields[1] == HeaderField("Set-Cookie", "x=1"))
  }

  @Test("reading ignores the case of names and joins the values of repeated names")
  func reading() {
    #expect(fields["accept"] == "a, b")
    #expect(fields.values(of: "SET-COOKIE") == ["x=1", "y=2"])
    #expect(fields.contains(name: "aCCept"))
    #expect(fields["Host"] == nil)
    #expect(fields.values(of: "Host").isEmpty)
    #expect(!fields.contains(name: "Host"))
  }

  @Test("names ignore the case of ASCII letters only")
  func asciiCase() {
    let fields: HeaderFields = ["a[@k": "1", "Ä": "2"]
    #expect(fields["A[@K"] == "1")
    #expect(fields["a{@k"] == nil)
    #expect(fields["a[`k"] == nil)
    #expect(fields["ä"] == nil)
    // The Kelvin sign (U+212A) is not a K.
    #expect(fields["a[@\u{212a}"] == nil)
  }

  @Test("writing a name replaces all its fields at the place of the first one")
  func writing() {
    var fields = fields
    fields["accept"] = "c"
    #expect(fields == ["Accept": "c", "Set-Cookie": "x=1", "set-cookie": "y=2"])
    fields["Host"] = "a.test"
    #expect(fields.last == HeaderField("Host", "a.test"))
    fields["SET-COOKIE"] = nil
    #expect(fields == ["Accept": "c", "Host": "a.test"])
    fields["none"] = nil
    #expect(fields.count == 2)
  }

  @Test("fields can be appended, replaced, changed and removed by index")
  func collection() {
    var fields = fields
    fields.append(HeaderField("Host", "a.test"))
    fields.replaceSubrange(0..<3, with: [HeaderField("X", "1")])
    #expect(fields == ["X": "1", "set-cookie": "y=2", "Host": "a.test"])
    fields[0].value = ""
    #expect(fields["x"]?.isEmpty == true)
    fields.removeAll { $0.name == "X" }
    #expect(fields.startIndex == 0 && fields.endIndex == 2)
    #expect(HeaderFields().isEmpty)
  }

  /// A field name, and whether it is valid.
  @Test(
    "only a token of HTTP is a valid field name",
    arguments: [
      ("", false), ("a", true), ("X-Y_z.9", true), ("!#$%&'*+-.^_`|~", true), ("a b", false), ("a:", false),
      ("a\r\nb", false), ("a\0", false), ("\"", false), ("(", false), ("é", false), ("{", false),
      ("\u{7f}", false),
    ])
  func tokens(_ text: String, _ isToken: Bool) {
    #expect(HeaderFields.isToken(text) == isToken)
    #expect((HeaderFields.fault(of: HeaderField(text, "v")) == nil) == isToken)
  }

  /// A field value, and whether it is valid.
  @Test(
    "a value with a line end or NUL is a fault, and the fault does not show the value",
    arguments: [
      ("", true), ("a b", true), ("\t é \u{1}", true), ("a\nHost: b", false), ("a\r", false),
      ("a\r\nb", false),
      ("a\0b", false),
    ])
  func fieldValues(_ value: String, _ isFine: Bool) {
    let fault = HeaderFields.fault(of: HeaderField("X-Secret", value))
    #expect((fault == nil) == isFine)
    // The fault does not quote the value, which may be a secret.
    if let fault { #expect(fault == "the value of the header X-Secret has a line end or a NUL") }
  }
}
