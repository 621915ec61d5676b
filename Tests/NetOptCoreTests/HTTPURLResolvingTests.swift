import NetOptCore
import Testing

/// Tests of `HTTPURL.resolving`, which resolves a reference (RFC 3986, section 5) such as the value of a
/// Location field.
@Suite struct HTTPURLResolvingTests {
  /// The examples of RFC 3986, sections 5.4.1 and 5.4.2, without the fragments, which are not sent.
  @Test(
    "references resolve as in the examples of RFC 3986",
    arguments: [
      ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
      ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
      ("#s", "http://a/b/c/d;p?q"),
      ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"),
      ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y"), ("", "http://a/b/c/d;p?q"),
      (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
      ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
      // Abnormal examples (section 5.4.2).
      ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
      ("/../g", "http://a/g"),
      ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
      ("..g", "http://a/b/c/..g"),
      ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
      ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
      ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
      ("g#s/./x", "http://a/b/c/g"),
      ("g#s/../x", "http://a/b/c/g"),
    ])
  func rfcExamples(_ reference: String, _ result: String) throws {
    let base = try HTTPURL("http://a/b/c/d;p?q")
    #expect(try base.resolving(reference).description == result)
  }

  /// Two of these references are examples of RFC 3986: `g:h`, and `http:g`, which a strict parser does not
  /// treat as a relative reference. The reference `:` is an exception: it resolves.
  @Test(
    "resolving refuses other schemes, invalid authorities and control characters",
    arguments: [
      "g:h", "http:g", "https:/g", "mailto:a@b.test", "javascript:alert(1)", "ftp://b.test/", "//", "//:80",
      "///x",
      "//user@b.test/", "https://b.test:0/", "//b c/", "a\nb", "/a\0", "\u{7f}", "https:", ":",
    ])
  func refuses(_ reference: String) throws {
    let base = try HTTPURL("http://a/b/c/d;p?q")
    // No scheme is before this colon, so it belongs to a path.
    guard reference != ":" else {
      #expect(try base.resolving(reference).description == "http://a/b/c/:")
      return
    }
    let error = #expect(throws: NetOptError.self) { try base.resolving(reference) }
    #expect(error?.code == .invalidURL)
  }

  @Test(
    "resolving removes dot segments and keeps other text, with non-ASCII encoded",
    arguments: [
      ("https://a.test", "b", "https://a.test/b"),
      ("https://a.test", "?b", "https://a.test/?b"),
      ("https://a.test?q", "", "https://a.test/?q"),
      ("https://a.test/x?q", "?", "https://a.test/x?"),
      ("https://a.test/x?q/r", "b", "https://a.test/b"),
      ("https://a.test:8443/x", "/b", "https://a.test:8443/b"),
      ("https://a.test:8443/x", "//b.test/c/../d", "https://b.test/d"),
      ("https://a.test:8443/x", "//b.test:8444", "https://b.test:8444/"),
      ("https://[::1]:8443/x/", "../y", "https://[::1]:8443/y"),
      ("https://a.test/x", "HTTP://B.test/c/./d/..?e/../f", "http://b.test/c/?e/../f"),
      ("https://a.test/x", "./a:b", "https://a.test/a:b"),
      ("https://a.test/x", "1a:b", "https://a.test/1a:b"),
      ("https://a.test/x", "/.//y", "https://a.test//y"),
      ("https://a.test/x//", "../y", "https://a.test/x/y"),
      // Resolving rewrites nothing else, neither in the base nor in the reference.
      ("https://a.test/a/../{b}|?\"%7\"", "", "https://a.test/a/../{b}|?\"%7\""),
      ("https://a.test/{b}/c", "d%7e%zz^", "https://a.test/{b}/d%7e%zz^"),
      ("https://a.test/x", "é b?ü 1", "https://a.test/%C3%A9%20b?%C3%BC%201"),
      ("https://a.test/x/y", "/\u{301}?\u{301}#\u{301}", "https://a.test/%CC%81?%CC%81"),
    ])
  func resolves(_ base: String, _ reference: String, _ result: String) throws {
    #expect(try HTTPURL(base).resolving(reference).description == result)
  }
}
