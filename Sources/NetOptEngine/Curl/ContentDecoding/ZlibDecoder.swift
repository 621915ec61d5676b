import CZlib

/// Decodes the codings gzip (RFC 1952) and deflate with zlib: https://zlib.net/manual.html.
///
/// A gzip body may have several members, one after the other. The coding "deflate" is data in the zlib format
/// (RFC 1950), but some servers send deflate data without zlib's header (RFC 1951). The first two bytes tell
/// which.
final class ZlibDecoder: CodingDecoder {
  /// The content coding to decode.
  enum Format { case gzip, deflate }

  private let format: Format
  /// zlib's state, owned by this object. zlib keeps pointers to the state, so it must not move.
  private let stream: UnsafeMutablePointer<z_stream>
  /// Whether zlib has initialised `stream`.
  private var isOpen = false
  /// The first two bytes of a deflate body, as far as they have arrived. They tell whether the body has
  /// zlib's header.
  private var start: [UInt8] = []
  private(set) var isAtEnd = false

  init(_ format: Format) throws(CodingFailure) {
    self.format = format
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    if format == .gzip { try open(windowBits: 15 + 16) }
  }

  deinit {
    if isOpen { inflateEnd(stream) }
    stream.deallocate()
  }

  /// Initialises `stream`.
  ///
  /// - Parameter windowBits: 15, the largest window, for the zlib format; plus 16 for gzip; negative for data
  ///   without a header.
  private func open(windowBits: Int32) throws(CodingFailure) {
    // inflateInit2 is a macro for this.
    guard inflateInit2_(stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw .outOfMemory
    }
    isOpen = true
  }

  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> (taken: Int, made: Int) {
    if isOpen { return try inflate(input, into: output) }
    let taken = min(2 - start.count, input.count)
    start += input[..<taken]
    guard start.count == 2 else { return (taken, 0) }
    // RFC 1950, section 2.2: the method is 8, and both bytes together are a multiple of 31.
    let hasHeader = start[0] & 0xf == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
    try open(windowBits: hasHeader ? 15 : -15)
    var failure: CodingFailure?
    var made = 0
    start.withUnsafeBytes { bytes in
      do throws(CodingFailure) { made = try inflate(bytes, into: output).made } catch { failure = error }
    }
    if let failure { throw failure }
    if made > 0 { return (taken, made) }
    let rest = try inflate(UnsafeRawBufferPointer(rebasing: input[taken...]), into: output)
    return (taken + rest.taken, rest.made)
  }

  /// Decodes with zlib until the input is used up or the output is full.
  private func inflate(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> (taken: Int, made: Int) {
    // zlib reads through this pointer and never writes. Both pointers are used within this call alone.
    stream.pointee.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
    stream.pointee.avail_in = UInt32(input.count)
    stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
    stream.pointee.avail_out = UInt32(output.count)
    defer {
      stream.pointee.next_in = nil
      stream.pointee.next_out = nil
    }
    while stream.pointee.avail_out > 0 {
      if isAtEnd {
        if stream.pointee.avail_in == 0 { break }
        guard format == .gzip, inflateReset(stream) == Z_OK else { throw .invalid }
        isAtEnd = false
      }
      let code = CZlib.inflate(stream, Z_NO_FLUSH)
      if code == Z_STREAM_END {
        isAtEnd = true
      } else if code == Z_BUF_ERROR {
        break
      } else if code != Z_OK {
        throw code == Z_MEM_ERROR ? .outOfMemory : .invalid
      }
    }
    return (input.count - Int(stream.pointee.avail_in), output.count - Int(stream.pointee.avail_out))
  }
}
