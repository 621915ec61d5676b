import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// The header lines of a request, and the limits for its head.
@Suite struct RequestLinesTests {
  /// The ranges of a compressed body are ranges of the compressed bytes, so a part cannot be decoded.
  @Test("a request asks for compressed responses unless it has a Range")
  func compression() throws {
    func lines(_ fields: [HeaderField]) throws -> [String] {
      RequestLines.make(for: try request(fields), userAgent: "")
    }
    #expect(try lines([]) == ["Accept-Encoding: \(ContentDecoder.codings)"])
    #expect(try lines([HeaderField("range", "bytes=0-9")]) == ["range: bytes=0-9"])
    let own = [HeaderField("Range", "bytes=0-9"), HeaderField("Accept-Encoding", "gzip")]
    #expect(try lines(own) == ["Range: bytes=0-9", "Accept-Encoding: gzip"])
  }

  /// Returns a request with a target of `length` bytes and the given fields.
  private func request(_ fields: [HeaderField] = [], target length: Int = 1) throws -> NetOptRequest {
    let origin = try HTTPURL("https://a.test/").origin
    var request = NetOptRequest(
      .get, HTTPURL(origin: origin, target: "/" + String(repeating: "a", count: length - 1)))
    request.headers = HeaderFields(fields)
    return request
  }

  @Test("path and query have at most 64 KiB")
  func longTargets() throws {
    #expect(RequestLines.fault(of: try request(target: HTTPURL.longest)) == nil)
    #expect(
      RequestLines.fault(of: try request(target: HTTPURL.longest + 1))
        == "path and query have 65537 bytes, and netopt sends at most 64 KiB")
  }

  @Test("a request has at most 2000 fields")
  func manyFields() throws {
    let most = (1...2000).map { HeaderField("x-\($0)", "") }
    #expect(RequestLines.fault(of: try request(most)) == nil)
    #expect(
      RequestLines.fault(of: try request(most + [HeaderField("a", "b")]))
        == "the request has 2001 header fields, and netopt sends at most 2000")
  }

  @Test(
    "the fields have at most 256 KiB, whichever names and values have them",
    arguments: 1...20 as ClosedRange<UInt64>)
  func largeFields(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var fields: [HeaderField] = []
    var room = HeaderFields.most.bytes
    for _ in 0..<random.below(1999) where room > 1 {
      let name = 1 + Int(random.below(UInt64(min(room - 1, 300))))
      let value = Int(random.below(UInt64(min(room - name, 2000))))
      fields.append(HeaderField(String(repeating: "n", count: name), String(repeating: "v", count: value)))
      room -= name + value
    }
    fields.append(HeaderField("n", String(repeating: "v", count: room - 1)))
    #expect(RequestLines.fault(of: try request(fields)) == nil, "seed \(seed)")
    let index = Int(random.below(UInt64(fields.count)))
    if random.below(2) == 0 { fields[index].name += "n" } else { fields[index].value += "v" }
    #expect(
      RequestLines.fault(of: try request(fields))
        == "the header fields have 262145 bytes, and netopt sends at most 256 KiB", "seed \(seed)")
  }
}
