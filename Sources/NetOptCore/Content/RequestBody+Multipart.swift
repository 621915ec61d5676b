/// Bodies of several parts, for HTML forms with files.
extension RequestBody {
  /// One part of a `multipart` body.
  public struct Part: Sendable {
    /// The name of the form's field.
    public var name: String
    /// The file name that the server receives; `nil` for a field without a file.
    public var filename: String?
    /// The content, with its media type (`RequestBody.contentType`).
    public var body: RequestBody

    /// Creates a part.
    ///
    /// - Parameters:
    ///   - name: the name of the form's field.
    ///   - body: the content, such as `.json(value)`.
    ///   - filename: the file name that the server receives. Default: `nil`, none.
    public init(_ name: String, _ body: RequestBody, filename: String? = nil) {
      (self.name, self.body, self.filename) = (name, body, filename)
    }

    /// A field with a text.
    public static func field(_ name: String, _ text: String) -> Part { Part(name, .text(text)) }

    /// A field with a file (`RequestBody.file`).
    ///
    /// - Parameters:
    ///   - name: the name of the form's field.
    ///   - path: the path of the file.
    ///   - filename: the file name that the server receives. Default: `nil`, the last part of the path.
    ///   - contentType: the media type. Default: `application/octet-stream`.
    /// - Throws: `unreadableFile`, as `RequestBody.file`.
    public static func file(
      _ name: String, _ path: String, filename: String? = nil,
      contentType: String = "application/octet-stream"
    ) throws(NetOptError) -> Part {
      Part(
        name, try .file(path, contentType: contentType),
        filename: filename ?? path.split(separator: "/").last.map(String.init) ?? path)
    }

    /// The lines before the content: delimiter, header fields and an empty line (RFC 7578, section 4).
    fileprivate func head(_ boundary: String) throws(NetOptError) -> [UInt8] {
      var text = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escaped(name))\""
      if let filename { text += "; filename=\"\(Self.escaped(filename))\"" }
      text += "\r\n"
      for (field, value) in [("Content-Type", body.contentType), ("Content-Encoding", body.contentEncoding)] {
        guard let value else { continue }
        if let fault = HeaderFields.fault(of: HeaderField(field, value)) {
          throw NetOptError(
            .invalidRequest, phase: .send, "a part of a multipart body cannot be sent: \(fault)")
        }
        text += "\(field): \(value)\r\n"
      }
      return Array((text + "\r\n").utf8)
    }

    /// A name as browsers write it between quotation marks: with `%22`, `%0D` and `%0A` for the characters
    /// that would end it (HTML Standard, "multipart/form-data encoding algorithm").
    private static func escaped(_ name: String) -> String {
      var bytes: [UInt8] = []
      for byte in name.utf8 {
        switch byte {
        case UInt8(ascii: "\""): bytes += Array("%22".utf8)
        case 0x0d: bytes += Array("%0D".utf8)
        case 0x0a: bytes += Array("%0A".utf8)
        default: bytes.append(byte)
        }
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// A body of several parts, with the media type `multipart/form-data` (RFC 7578). The client reads files
  /// while it sends the body. The length is known unless a part is a stream of unknown length. The client can
  /// send the body again unless a part is a `stream`.
  ///
  /// ```swift
  /// let body = try RequestBody.multipart([
  ///   .field("title", "Lamp"), .file("photo", "/tmp/lamp.jpg", contentType: "image/jpeg"),
  /// ])
  /// ```
  ///
  /// - Throws: `invalidRequest` if the media type of a part cannot be a field's value, or the length of a
  ///   part is negative or too large.
  public static func multipart(_ parts: [Part]) throws(NetOptError) -> RequestBody {
    // 128 random bits, so that no part contains the delimiter.
    let number = { String(UInt64.random(in: 0 ... .max), radix: 16) }
    let boundary = "netopt-\(number())-\(number())"
    let lineEnd = Array("\r\n".utf8)
    var pieces: [Source] = []
    for part in parts {
      pieces += [.bytes(try part.head(boundary)), part.body.source, .bytes(lineEnd)]
    }
    pieces.append(.bytes(Array("--\(boundary)--\r\n".utf8)))
    return RequestBody(
      source: try .joined(pieces), contentType: "multipart/form-data; boundary=\(boundary)")
  }
}

extension RequestBody.Source {
  /// The bytes of several sources, one after the other. In memory if all of them are.
  ///
  /// - Throws: `invalidRequest` for a negative length, and for a sum that does not fit into 64 bits.
  fileprivate static func joined(_ sources: [Self]) throws(NetOptError) -> Self {
    var length: Int64? = 0
    var (isInMemory, isRepeatable) = (true, true)
    for source in sources {
      let count: Int64?
      switch source {
      case .none: count = 0
      case .bytes(let piece): count = Int64(piece.count)
      case .stream(let announced, let canRepeat, _):
        count = announced
        isInMemory = false
        isRepeatable = isRepeatable && canRepeat
      }
      if let count, count < 0 { throw AnnouncedLength.impossible }
      guard let known = length, let count else {
        length = nil
        continue
      }
      let (sum, overflows) = known.addingReportingOverflow(count)
      if overflows { throw AnnouncedLength.impossible }
      length = sum
    }
    if isInMemory {
      return .bytes(sources.reduce(into: []) { if case .bytes(let piece) = $1 { $0 += piece } })
    }
    return .stream(length: length, isRepeatable: isRepeatable) {
      JoinedIterator(sources: sources[...], use: $0)
    }
  }
}

/// Iterates over the chunks of several sources, one source after the other. Checks the length of each source:
/// the excess of one could otherwise make up for what another lacks.
private struct JoinedIterator: AsyncIteratorProtocol {
  private var sources: ArraySlice<RequestBody.Source>
  private var current: (any AsyncIteratorProtocol<[UInt8], any Error>)?
  private var announced = AnnouncedLength(nil)
  private let use: RequestBody.Use

  init(sources: ArraySlice<RequestBody.Source>, use: RequestBody.Use) {
    (self.sources, self.use) = (sources, use)
  }

  mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

  mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
    while true {
      if current != nil {
        let chunk = try await current?.next(isolation: actor)
        try announced.take(chunk)
        if let chunk { return chunk }
        current = nil
      }
      switch sources.popFirst() {
      case nil: return nil
      case .some(.none): continue
      case .bytes(let bytes): return bytes
      case .stream(let length, _, let makeIterator):
        announced = AnnouncedLength(length)
        current = makeIterator(use)
      }
    }
  }
}
