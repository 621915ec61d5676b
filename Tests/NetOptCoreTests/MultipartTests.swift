import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Multipart bodies. Python's `email` package reads them, independently of netopt.
@Suite struct MultipartTests {
  /// Texts that may stand in names, with characters that end a quoted string or a line.
  private static let names = [
    "a", "", "ä€😀", "a\"b", "a\r\nX-Injected: 1", "a;b=c", "\\", "--x", " b ", "%22", "a\nb", "\"",
  ]

  /// A part as Python reads it.
  private struct ReadPart: Codable, Equatable {
    var name: String
    var filename: String?
    var type: String?
    var body: [UInt8]
  }

  private static let program = """
    import sys, json, re
    from email.parser import BytesParser
    from email.policy import HTTP
    for line in sys.stdin:
        folder = line[:-1]
        head = b'Content-Type: ' + open(folder + '/type', 'rb').read() + b'\\r\\n\\r\\n'
        message = BytesParser(policy=HTTP).parsebytes(head + open(folder + '/body', 'rb').read())
        parts = []
        for part in message.iter_parts():
            # The bytes of the field itself, because the package guesses the charset of names.
            lines = part.as_bytes(policy=HTTP.clone(refold_source='none')).split(b'\\r\\n\\r\\n', 1)[0]
            field = re.search(rb'form-data; name="([^"]*)"(?:; filename="([^"]*)")?', lines)
            kind = part['Content-Type']
            parts.append({
                'name': field[1].decode(), 'filename': None if field[2] is None else field[2].decode(),
                'type': None if kind is None else str(kind), 'body': list(part.get_payload(decode=True))})
        print(json.dumps(parts))
    """

  /// A name as it stands between the quotation marks.
  private static func escaped(_ name: String) -> String {
    String(
      decoding: name.utf8.flatMap { byte -> [UInt8] in
        switch byte {
        case 0x22: Array("%22".utf8)
        case 0x0d: Array("%0D".utf8)
        case 0x0a: Array("%0A".utf8)
        default: [byte]
        }
      }, as: UTF8.self)
  }

  /// Reads a whole body, as often as it can be read.
  private static func bytes(_ body: RequestBody) async throws -> [UInt8] {
    switch body.source {
    case .none: return []
    case .bytes(let bytes): return bytes
    case .stream(let length, _, let makeIterator):
      var bytes: [UInt8] = []
      var chunks = makeIterator(.sending)
      while let chunk = try await chunks.next() { bytes += chunk }
      if let length { #expect(Int(length) == bytes.count) }
      return bytes
    }
  }

  @Test("Python reads the parts of random bodies: names, file names, media types and contents")
  func parts() async throws {
    var random = SplitMix64(seed: 4)
    let folder = try TemporaryDirectory.make("multipart")
    var expected: [[ReadPart]] = []
    var folders: [String] = []
    for number in 0..<120 {
      var parts: [RequestBody.Part] = []
      var read: [ReadPart] = []
      for index in 0...random.below(4) {
        let name = Self.names.randomElement(using: &random)!
        let bytes = (0..<Int(random.below(random.below(8) == 0 ? 300_000 : 40))).map { _ in
          UInt8(truncatingIfNeeded: random.next())
        }
        switch random.below(4) {
        case 0:
          parts.append(.field(name, "text \r\n--\(index)"))
          read.append(ReadPart(name: name, filename: nil, type: nil, body: Array("text \r\n--\(index)".utf8)))
        case 1:
          let path = "\(folder)/\(number)-\(index).bin"
          try TextFile.write(bytes, to: path)
          parts.append(try .file(name, path, contentType: "image/x-\(index)"))
          read.append(
            ReadPart(name: name, filename: "\(number)-\(index).bin", type: "image/x-\(index)", body: bytes))
        case 2:
          let filename = Self.names.randomElement(using: &random)!
          var body = RequestBody.bytes(bytes)
          body.contentType = "application/octet-stream"
          parts.append(RequestBody.Part(name, body, filename: filename))
          read.append(
            ReadPart(name: name, filename: filename, type: "application/octet-stream", body: bytes))
        default:
          let isKnown = random.below(2) == 0
          let stream = AsyncStream<[UInt8]> {
            $0.yield(bytes)
            $0.finish()
          }
          var body = RequestBody.stream(length: isKnown ? Int64(bytes.count) : nil, stream)
          body.contentType = "application/octet-stream"
          parts.append(RequestBody.Part(name, body))
          read.append(ReadPart(name: name, filename: nil, type: "application/octet-stream", body: bytes))
        }
      }
      let body = try RequestBody.multipart(parts)
      #expect(body.isRepeatable == parts.allSatisfy { $0.body.isRepeatable })
      #expect((body.length == nil) == parts.contains { $0.body.length == nil })
      let whole = try await Self.bytes(body)
      if body.isRepeatable { #expect(try await Self.bytes(body) == whole) }
      let own = "\(folder)/\(number)"
      try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: false)
      try TextFile.write(whole, to: own + "/body")
      try TextFile.write(try #require(body.contentType), to: own + "/type")
      folders.append(own)
      expected.append(
        read.map { part in
          var part = part
          part.name = Self.escaped(part.name)
          part.filename = part.filename.map(Self.escaped)
          return part
        })
    }
    let lines = try await Python.output(of: Self.program, on: folders)
    try #require(lines.count == folders.count)
    for (line, parts) in zip(lines, expected) {
      #expect(try JSONDecoder().decode([ReadPart].self, from: Data(line.utf8)) == parts)
    }
  }

  @Test("a part whose stream has another length than it announced fails the body, whatever the others have")
  func wrongLengths() async throws {
    let stream = { @Sendable (announced: Int64, count: Int) -> RequestBody in
      .stream(
        length: announced,
        AsyncStream {
          $0.yield([UInt8](repeating: 1, count: count))
          $0.finish()
        })
    }
    let body = try RequestBody.multipart([.init("a", stream(3, 4)), .init("b", stream(3, 2))])
    let error = await #expect(throws: NetOptError.self) { try await Self.bytes(body) }
    #expect(error?.code == .invalidRequest)
  }

  @Test(
    "lengths that are negative or too large together are refused",
    arguments: [[-1], [.min], [.max], [.max - 120], [.max / 2 + 1, .max / 2 + 1], [.min, .max]] as [[Int64]])
  func extremeLengths(_ lengths: [Int64]) throws {
    let parts = lengths.map {
      RequestBody.Part("a", .stream(length: $0, AsyncStream<[UInt8]> { $0.finish() }))
    }
    let error = #expect(throws: NetOptError.self) { try RequestBody.multipart(parts) }
    #expect(error?.code == .invalidRequest)
  }

  @Test("a media type with a line end is refused", arguments: ["a/b\r\nX: 1", "a/b\n", "\u{0}"])
  func injectedType(_ type: String) {
    var body = RequestBody.text("x")
    body.contentType = type
    let error = #expect(throws: NetOptError.self) { try RequestBody.multipart([.init("a", body)]) }
    #expect(error?.code == .invalidRequest)
  }
}
