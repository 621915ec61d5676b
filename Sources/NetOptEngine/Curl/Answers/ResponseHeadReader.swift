import NetOptCore

/// Reads the heads of a response line by line, as libcurl delivers them: heads of interim responses, the
/// final head, and trailers. A state machine without I/O.
///
/// libcurl accepts many heads that RFC 9112 forbids, and keeps all lines in memory. This reader limits the
/// number of lines and of bytes. It refuses a head whose fault makes it uncertain where the response ends, or
/// could make one field look like another.
struct ResponseHeadReader {
  /// What determines the end of a body (RFC 9112, section 6.3).
  enum Framing: Hashable {
    /// The body has this many bytes.
    case length(Int64)
    /// The body ends with its last chunk.
    case chunked
    /// The body ends with the connection, or with the stream of HTTP/2.
    case end
  }

  /// What the next line is: the first line of a head, another line of the head, or, after the final head, a
  /// trailer.
  private enum State { case statusLine, fields, complete }

  /// The maximum number of bytes of all heads together, including interim heads and trailers.
  static var limit: Int { HeaderFields.most.bytes }
  /// The maximum number of lines of all heads together. libcurl keeps a few hundred bytes per line, even
  /// after the call.
  static var mostLines: Int { HeaderFields.most.fields }
  /// The maximum number of folds in all heads together: lines that continue the field before them. libcurl
  /// copies the whole field for each fold.
  static let mostFolds = 64
  /// The initial capacity of `lines`, in bytes. Most heads are not longer, so `lines` rarely grows.
  private static let usualSize = 512

  /// The status, version and framing of the head whose first line was read last. Before any first line, they
  /// have the initial values below.
  private(set) var status = 0
  private(set) var version = HTTPVersion.http1_1
  private(set) var framing = Framing.end
  /// Whether the present head has Transfer-Encoding together with Content-Length, or with HTTP/1.0. An
  /// intermediary may then have taken another byte for the end of the body.
  private(set) var isAmbiguous = false
  /// Whether a field has arrived, in the head of an interim response or in the final head.
  private(set) var hasFields = false
  /// The value of Content-Encoding in the present head, as received. The values of several fields are joined
  /// with commas.
  private(set) var contentEncoding = ""
  private var state = State.statusLine
  /// The number of bytes and of lines of all heads so far.
  private var (total, lineCount) = (0, 0)
  /// The number of folds in all heads so far.
  private var folds = 0
  /// The field lines of the present head, with their line ends.
  private var lines: [UInt8] = []

  /// Whether the next line is the first line of a head.
  var isAtStatusLine: Bool { state == .statusLine }

  /// Whether the final head is complete.
  var isComplete: Bool { state == .complete }

  /// Whether the status says that the response has no body.
  var hasNoBody: Bool { ResponseHead.hasNoBody(status) }

  /// Whether the response has no body by its status or the request's method, but its head announces one. A
  /// faulty server may send this body after all. A response to HEAD counts as announcing a body unless its
  /// Content-Length is 0.
  ///
  /// - Parameter isHead: whether the request is a HEAD request.
  func announcesBody(toHead isHead: Bool) -> Bool {
    framing != .length(0) && (isHead || hasNoBody && framing != .end)
  }

  /// Removes and returns the final head. Call it only when the head is complete.
  mutating func take() -> ResponseHead {
    defer { lines = [] }
    return ResponseHead(status: status, version: version, lines: lines)
  }

  /// Forgets everything that was read, because libcurl sends the request again.
  mutating func restart() { self = ResponseHeadReader() }

  /// Reads the next line, including its line end.
  ///
  /// - Parameter isMultiplexed: whether the line came over HTTP/2. nghttp2 has then checked names and values.
  /// - Returns: the fault of the line or the head; `nil` if they are valid so far.
  mutating func read(_ line: UnsafeRawBufferPointer, isMultiplexed: Bool) -> HeadFault? {
    total += line.count
    lineCount += 1
    guard total <= Self.limit else { return .tooLarge }
    guard lineCount <= Self.mostLines else { return .tooManyLines }
    // Newer releases of libcurl deliver a part of a line when the connection ends within the line.
    guard line.last == 0x0a else { return .lineCut }
    switch state {
    case .statusLine: return readStatus(line, isMultiplexed: isMultiplexed)
    // Trailers are not part of the head (RFC 9110, section 6.5.1).
    case .complete: return nil
    case .fields:
      switch line.first {
      case 0x0d where line.count <= 2, 0x0a: return endOfHead()
      case 0x20, 0x09: return fold(line)
      default: return readField(line, isMultiplexed: isMultiplexed)
      }
    }
  }

  /// Reads the first line of a head, and forgets the previous head.
  private mutating func readStatus(_ line: UnsafeRawBufferPointer, isMultiplexed: Bool) -> HeadFault? {
    guard let start = StatusLine(line) else { return StatusLine.fault(of: line) }
    // Newer releases of libcurl accept a status line of HTTP/3 on an HTTP/1.1 connection.
    guard start.version != .http3, (start.version == .http2) == isMultiplexed else { return .versionMismatch }
    // netopt never asks to switch protocols (RFC 9110, section 15.2.2).
    if start.status == 101 { return .interim101 }
    status = start.status
    version = start.version
    framing = .end
    isAmbiguous = false
    contentEncoding = ""
    if !lines.isEmpty { lines.removeAll(keepingCapacity: true) }
    lines.reserveCapacity(Self.usualSize)
    state = .fields
    return nil
  }

  /// Handles the empty line at the end of a head.
  private mutating func endOfHead() -> HeadFault? {
    if lines.withUnsafeBytes({ SlowText.hasLongRun($0) }) { return .longRun }
    // Another head follows an interim response.
    state = status < 200 ? .statusLine : .complete
    return nil
  }

  /// Appends a fold to the last field. The white space at the beginning of the fold replaces the line end of
  /// the field (RFC 9112, section 5.2).
  private mutating func fold(_ line: UnsafeRawBufferPointer) -> HeadFault? {
    folds += 1
    if folds > Self.mostFolds { return .folds }
    if lines.isEmpty { return .firstFold }
    if let byte = Self.unclean(line) { return .value(byte) }
    // netopt and libcurl have already used the value of this field without its continuation.
    if lastFieldFrames { return .framingFold }
    while let last = lines.last, last == 0x0a || last == 0x0d { lines.removeLast() }
    lines.append(contentsOf: line)
    return nil
  }

  /// Whether the last field in `lines` is one that netopt acts on while it reads the head (`Name`).
  private var lastFieldFrames: Bool {
    let end = lines.dropLast().lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
    return lines[end...].withUnsafeBytes { Name(of: UnsafeRawBufferPointer(rebasing: $0[...])) != nil }
  }

  /// Reads a field line, and updates the framing or the content coding if the field determines them.
  private mutating func readField(_ line: UnsafeRawBufferPointer, isMultiplexed: Bool) -> HeadFault? {
    if !isMultiplexed {
      guard let colon = line.firstIndex(of: 0x3a) else { return .noColon }
      guard colon > 0 else { return .noName }
      if let byte = line[..<colon].first(where: { !Self.isTokenByte($0) }) { return .name(byte) }
      if let byte = Self.unclean(line) { return .value(byte) }
    }
    hasFields = true
    lines.append(contentsOf: line)
    guard let first = line.first, first | 0x20 == 0x63 || first | 0x20 == 0x74 else { return nil }
    switch Name(of: line) {
    case nil: return nil
    case .contentLength: return readLength(line, from: 15)
    case .transferEncoding:
      // netopt asks for no transfer coding except chunked (RFC 9112, section 7). With any other coding,
      // netopt cannot find the end of the body.
      guard framing != .chunked,
        Self.trimmed(line.dropFirst(18)).elementsEqual("chunked".utf8, by: Self.equal)
      else { return .transferCoding }
      if case .length = framing { isAmbiguous = true }
      // HTTP/1.0 has no Transfer-Encoding (RFC 9112, section 6.1).
      if version == .http1_0 { isAmbiguous = true }
      framing = .chunked
      return nil
    case .contentEncoding:
      // `ContentDecoder` refuses a value of this length. Without the limit, each line would copy all lines
      // before it.
      guard contentEncoding.utf8.count <= ContentDecoder.mostBytes else { return nil }
      let value = String(decoding: Self.trimmed(line.dropFirst(17)), as: UTF8.self)
      contentEncoding = contentEncoding.isEmpty ? value : "\(contentEncoding), \(value)"
      return nil
    }
  }

  /// Reads the value of Content-Length: a number, or the same number several times (RFC 9110, section 8.6).
  ///
  /// - Parameter start: the index in the line at which the value begins.
  private mutating func readLength(_ line: UnsafeRawBufferPointer, from start: Int) -> HeadFault? {
    var index = start
    func skipSpaces() { while index < line.count, Self.isSpace(line[index]) { index += 1 } }
    while true {
      skipSpaces()
      let first = index
      var length: Int64 = 0
      while index < line.count, case let digit = line[index] &- 0x30, digit <= 9 {
        let (tens, tooLarge) = length.multipliedReportingOverflow(by: 10)
        let (sum, isTooLarge) = tens.addingReportingOverflow(Int64(digit))
        guard !tooLarge, !isTooLarge else { return .contentLength }
        length = sum
        index += 1
      }
      guard index > first else { return .contentLength }
      switch framing {
      case .length(let other): guard other == length else { return .contentLength }
      case .chunked: isAmbiguous = true
      case .end: framing = .length(length)
      }
      skipSpaces()
      guard index < line.count else { return nil }
      guard line[index] == 0x2c else { return .contentLength }
      index += 1
    }
  }

  // MARK: Bytes

  /// The fields that netopt acts on while it reads a head.
  private enum Name {
    case contentLength, contentEncoding, transferEncoding

    /// Finds the name at the beginning of a field line; `nil` for any other name.
    init?(of line: UnsafeRawBufferPointer) {
      func begins(_ name: StaticString, from start: Int = 0) -> Bool {
        guard line.count >= name.utf8CodeUnitCount else { return false }
        for index in start..<name.utf8CodeUnitCount where line[index] | 0x20 != name.utf8Start[index] | 0x20 {
          return false
        }
        return true
      }
      guard line.count > 8 else { return nil }
      // One comparison of the first eight bytes finds two of the names, and rules out most other names with
      // the same first letters. This code runs for each response.
      let word = UInt64(littleEndian: line.loadUnaligned(as: UInt64.self)) | 0x2020_2020_2020_2020
      if word == 0x2d74_6e65_746e_6f63 {  // "content-"
        if begins("content-length:", from: 8) {
          self = .contentLength
        } else if begins("content-encoding:", from: 8) {
          self = .contentEncoding
        } else {
          return nil
        }
      } else if begins("transfer-encoding:") {
        self = .transferEncoding
      } else {
        return nil
      }
    }
  }

  /// Whether two bytes are equal ignoring case. `b` must be a lower-case letter.
  private static func equal(_ a: UInt8, _ b: UInt8) -> Bool { a | 0x20 == b }

  /// Whether a byte is a space, a tab, or a part of a line end.
  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a
  }

  /// Removes spaces, tabs and line ends at both ends.
  private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
    var (start, end) = (bytes.startIndex, bytes.endIndex)
    while start < end, isSpace(bytes.base[start]) { start += 1 }
    while start < end, isSpace(bytes.base[end - 1]) { end -= 1 }
    return bytes[start..<end]
  }

  /// Returns the first byte of a line that is a NUL, or a CR that does not belong to the line end; `nil` if
  /// there is none (RFC 9110, section 5.5).
  private static func unclean(_ line: UnsafeRawBufferPointer) -> UInt8? {
    for index in line.indices {
      let byte = line[index]
      if byte == 0 || byte == 0x0d && !(index + 2 == line.count && line[index + 1] == 0x0a) { return byte }
    }
    return nil
  }

  /// Whether a byte may appear in a token (RFC 9110, section 5.6.2).
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x5e...0x7a, 0x7c, 0x7e, 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e: true
    default: false
    }
  }
}

/// The first line of a response's head, as libcurl delivers it: `HTTP/1.1 200 OK`, `HTTP/2 200`.
private struct StatusLine {
  let version: HTTPVersion
  let status: Int

  /// Parses a line. Returns `nil` if it is not a valid status line.
  init?(_ line: UnsafeRawBufferPointer) {
    // Compared byte by byte, because this code runs for each response.
    guard line.count >= 10, line[0] == 0x48, line[1] == 0x54, line[2] == 0x54, line[3] == 0x50,
      line[4] == 0x2f
    else { return nil }
    let space: Int
    switch (line[5], line[6]) {
    case (0x31, 0x2e) where line[8] == 0x20:
      version = line[7] == 0x30 ? .http1_0 : .http1_1
      space = 8
    case (0x32, 0x20):
      version = .http2
      space = 6
    case (0x33, 0x20):
      version = .http3
      space = 6
    default: return nil
    }
    guard space + 4 < line.count else { return nil }
    var status = 0
    for index in space + 1...space + 3 {
      let digit = line[index] &- 0x30
      guard digit <= 9 else { return nil }
      status = status * 10 + Int(digit)
    }
    let end = line[space + 4]
    // RFC 9110, section 15, defines no status below 100.
    guard end == 0x20 || end == 0x0d || end == 0x0a, status >= 100 else { return nil }
    self.status = status
  }

  /// Returns the fault of a line that is not a valid status line.
  static func fault(of line: UnsafeRawBufferPointer) -> HeadFault {
    guard line.starts(with: "HTTP/".utf8) else { return .notHTTP }
    let version = line.dropFirst(5).prefix { $0 != 0x20 && $0 != 0x0d && $0 != 0x0a }
    let isVersion =
      version.elementsEqual("2".utf8) || version.elementsEqual("3".utf8)
      || version.count == 3 && version.starts(with: "1.".utf8)
        && 0x30...0x39 ~= version[version.startIndex + 2]
    return isVersion ? .status : .unsupportedVersion
  }
}
