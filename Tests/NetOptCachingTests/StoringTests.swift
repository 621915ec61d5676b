import NetOptCaching
import NetOptCore
import Testing

struct StoringTests {
  /// The arguments are the status, the value of `Cache-Control`, whether the response is stored, and the
  /// section of RFC 9111 that decides.
  @Test(
    "status and Cache-Control decide whether a response is stored",
    arguments: [
      (200, "max-age=10", true, "3"), (200, "private, max-age=10", true, "3"),
      (200, "no-store", false, "5.2.2.5"),
      (200, "max-age=10, No-Store", false, "5.2.2.5"),
      (200, "max-age=10, no-store, must-understand", true, "3"),
      (599, "max-age=10, no-store, must-understand", false, "5.2.2.3"), (599, "max-age=10", true, "3"),
      (599, "max-age=10, must-understand", false, "5.2.2.3"), (206, "max-age=10", false, "3.3"),
      (226, "max-age=10", false, "3"), (304, "max-age=10", false, "3"), (416, "max-age=10", false, "3"),
      (503, "max-age=10", true, "3"),
      (200, "max-age=0", false, "3"), (200, "no-cache", false, "3"), (200, "max-age=2, no-cache", true, "3"),
      (301, "max-age=10", true, "3"), (404, "foo", false, "3"),
    ] as [(Int, String, Bool, String)])
  func statusAndControl(_ status: Int, _ control: String, _ isStored: Bool, _ section: String) throws {
    #expect(
      try storing(["Cache-Control": control], status: status) == (isStored, "RFC 9111, section \(section)"))
  }

  @Test("a 200 or 404 with a validator is stored without explicit freshness, a 500 is not")
  func validators() throws {
    #expect(try storing(["ETag": "\"a\""]).isStored)
    #expect(try storing(["Cache-Control": "no-cache", "ETag": "\"a\""]).isStored)
    #expect(try storing(["Last-Modified": date(-1), "Date": date(0)]).isStored)
    #expect(try storing(["ETag": "\"a\""], status: 404).isStored)
    #expect(try !storing(["ETag": "\"a\""], status: 500).isStored)
    #expect(try !storing([:]).isStored)
  }

  /// The terms are the fields that decide whether a stored response may answer, and what its body means
  /// (`StoredFields.dropsCachingTerms`).
  @Test(
    "a response is not stored if Connection or no-cache drops a field of its terms",
    arguments: [
      ["Cache-Control": "max-age=10, no-cache=\"vary\"", "Vary": "X-User"],
      ["Cache-Control": "max-age=10, private, no-cache=\"a, Vary\"", "Vary": "X-User"],
      ["Cache-Control": "max-age=10", "Vary": "X-User", "Connection": "close, VARY"],
      [
        "Cache-Control": "no-cache", "ETag": "\"a\"", "Expires": "Fri, 01 Jan 2100 00:00:00 GMT",
        "Connection": "cache-control",
      ],
      ["Cache-Control": "max-age=10", "Content-Encoding": "gzip", "Connection": "Content-Encoding"],
    ] as [HeaderFields])
  func lostTerms(_ fields: HeaderFields) throws {
    #expect(try storing(fields) == (false, "RFC 9110, section 7.6.1"))
  }

  @Test("responses with the statuses of RFC 6585 are not stored", arguments: [428, 429, 431, 511])
  func statusesOfRFC6585(status: Int) throws {
    let fields: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"a\""]
    let terms = ResponseTerms(status: status, fields: fields, requested: 0, received: 0)
    let request = CacheRequest(try NetOptRequest(.get, "https://a.test/"), userAgent: "")
    #expect(!Storing(request, status: status, fields, terms).isStored)
  }

  @Test("no-store in a request, and methods other than GET and POST, prevent storing")
  func requests() throws {
    let fresh: HeaderFields = ["Cache-Control": "max-age=10"]
    #expect(try storing(fresh, to: ["Cache-Control": "no-store"]) == (false, "RFC 9111, section 5.2.1.5"))
    // A private cache may store responses to requests with credentials. It may store responses with
    // `Set-Cookie` too, without this field.
    #expect(try storing(fresh, to: ["Authorization": "Bearer secret"]).isStored)
    #expect(try storing(["Cache-Control": "max-age=10", "Set-Cookie": "a=b"]).isStored)
    for method in [.put, .delete, .head, "M-SEARCH"] as [NetOptRequest.Method] {
      #expect(try !storing(fresh, to: [:], method).isStored)
    }
  }

  @Test("a response to POST is stored if it has explicit freshness and the URL as Content-Location")
  func post() throws {
    let fields: HeaderFields = ["Cache-Control": "max-age=10", "Content-Location": "/thing"]
    #expect(try storing(fields, to: [:], .post) == (true, "RFC 9110, section 9.3.3"))
    #expect(try !storing(["Cache-Control": "max-age=10"], to: [:], .post).isStored)
    #expect(try !storing(["Content-Location": "/thing", "ETag": "\"a\""], to: [:], .post).isStored)
    #expect(
      try !storing(["Cache-Control": "max-age=10", "Content-Location": "/other"], to: [:], .post).isStored)
  }

  @Test("fields of the connection, cookies and fields that no-cache names are not stored")
  func droppedFields() {
    let fields: HeaderFields = [
      "Connection": "a, B", "A": "1", "b": "2", "C": "3", "Keep-Alive": "x", "TE": "x", "Trailer": "x",
      "Transfer-Encoding": "chunked", "Upgrade": "x", "Proxy-Connection": "x", "Proxy-Authenticate": "x",
      "Proxy-Authentication-Info": "x", "Proxy-Authorization": "x", "Set-Cookie": "a=b", "Set-Cookie": "c=d",
      "Content-Length": "5", "X-Secret": "s",
    ]
    let kept = StoredFields.stored(
      fields, control: CacheControl(["Cache-Control": "no-cache=\"x-secret\""]), isDecoded: false,
      received: start)
    // In a message with `Transfer-Encoding`, `Content-Length` has no meaning. So it is not stored.
    #expect(kept == ["C": "3", "Date": date(0)])
    let plain: HeaderFields = ["C": "3", "Content-Length": "5"]
    #expect(
      StoredFields.stored(plain, control: CacheControl([:]), isDecoded: false, received: start)
        == plain + ["Date": date(0)])
  }

  @Test("decoded content is stored with a weak tag, and without coding and length")
  func decodedContent() {
    let fields: HeaderFields = ["Content-Encoding": "gzip", "Content-Length": "5", "ETag": "\"a\"", "A": "1"]
    let kept = StoredFields.stored(fields, control: CacheControl([:]), isDecoded: true, received: start)
    #expect(kept == ["ETag": "W/\"a\"", "A": "1", "Date": date(0)])
  }

  @Test("an unsafe request invalidates its URL, and a Location of the same origin")
  func invalidation() throws {
    // The paths of the URLs whose entries a request with this method, and a response with this status and
    // these fields, make invalid.
    func targets(_ method: NetOptRequest.Method, _ status: Int, _ fields: HeaderFields) throws -> [String] {
      Invalidation.urls(try asked([:], method), status: status, fields).map(\.target)
    }
    let fields: HeaderFields = ["Location": "/made", "Content-Location": "https://other.test/x"]
    #expect(try targets(.post, 201, fields) == ["/thing", "/made"])
    #expect(try targets("M-SEARCH", 302, [:]) == ["/thing"])
    #expect(try targets(.delete, 500, fields) == [])
    #expect(try targets(.put, 404, fields) == [])
    #expect(try targets(.get, 200, fields) == [])
    #expect(try targets(.post, 200, ["Location": "http://api.test/made"]) == ["/thing"])
    #expect(try targets(.post, 200, ["Location": "https://api.test:443/made"]) == ["/thing", "/made"])
  }
}
