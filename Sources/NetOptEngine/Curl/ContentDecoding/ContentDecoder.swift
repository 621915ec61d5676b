import Glibc
import NetOptCore

/// Decodes the content codings of one body as it arrives (RFC 9110, section 8.4).
///
/// libcurl could decode too, but it takes a truncated body for a complete one, because it does not check
/// whether the coding reached its end. Confined to the loop.
struct ContentDecoder {
  /// The codings that requests ask for and that this decoder supports.
  static let codings = "gzip, deflate, br, zstd"
  /// The maximum number of codings of one body. Each coding has a window of up to 16 MiB, which a few bytes
  /// can fill.
  static let mostCodings = 2
  /// The limits for the field Content-Encoding: the number of list members, including empty ones and
  /// `identity`, and the number of bytes of the value. Both are below the limits of netopt's cache
  /// (`FieldText` in NetOptCaching). Beyond its limits, the cache would not read the field, and would take
  /// the decoded body for an encoded one.
  static let mostMembers = 64
  static let mostBytes = 1024
  /// The limit for the bytes that one coding passes to the next: this many per byte of output, plus
  /// `mostBeforeFirst`. The overhead of a coding on incompressible data is far smaller. Without the limit,
  /// empty blocks within empty blocks would yield hardly any output, and decoding 4 MiB of them takes 0.15 s.
  /// A coding may need a whole block before it yields output: 128 KiB for Zstandard (RFC 8878, section
  /// 3.1.1.2.4).
  private static let mostPerByte = 2
  private static let mostBeforeFirst = 256 * 1024
  /// The limit for the time that the loop spends on decoding a body, in nanoseconds: `longestTime`, plus a
  /// time for each input byte (5 MB a second), for each output byte (40 MB a second) and for each piece. Even
  /// slow machines decode several times as fast. An attacker can make blocks that take a microsecond or more
  /// per byte. `timePerPiece` is about the time for 9 input bytes, the size of an HTTP/2 frame's header.
  /// Measuring the time of a piece takes less, even on a slow machine.
  private static let longestTime: Int64 = 20_000_000
  private static let timePerByteIn: Int64 = 200
  private static let timePerByteOut: Int64 = 25
  private static let timePerPiece: Int64 = 2000
  /// The decoding of a piece with at least this many bytes is measured with the thread's CPU time. Reading
  /// this time takes a system call, which costs too much for shorter pieces.
  private static let longPiece = 1024
  /// A measurement with the monotonic clock of at least this time, in nanoseconds, is dropped, because it may
  /// include an interruption of the thread. Later measurements use the thread's CPU time.
  private static let shortTime: Int64 = 50_000
  /// The size of the pieces that one coding passes to the next, in bytes.
  private static let pieceSize = 16 * 1024

  /// One coding. Its output is the input of the next stage.
  private struct Stage {
    let coding: any CodingDecoder
    /// The output of the previous stage that this stage has not taken. Always empty in the first stage.
    var input: ArraySlice<UInt8> = []
  }

  /// The stages in decoding order: the coding that the server applied last comes first.
  private var stages: [Stage] = []
  /// Whether any byte of the body has arrived.
  private var hasInput = false
  /// The number of bytes that codings passed to each other, and the number of output bytes.
  private var (between, cameOut) = (0, 0)
  /// The number of input bytes that were taken.
  private var cameIn = 0
  /// The number of calls of `decode(_:into:)`, each of which decodes a piece of the body.
  private var pieces = 0
  /// The time that decoding has taken so far, in nanoseconds.
  private(set) var spent: Int64 = 0
  /// When the present measurement began, in nanoseconds on the clock that `time` reads.
  private var begun: Int64 = 0
  /// Whether decoding is measured with the thread's CPU time, which does not include the time of other
  /// threads. At first, short pieces are measured with the monotonic clock, which is cheaper to read. From
  /// the first piece that is long or takes long, all are measured with CPU time.
  private var isExact = false
  /// Reads a clock, in nanoseconds (clock_gettime(2)).
  private let clock: @Sendable (clockid_t) -> Int64

  /// Makes a decoder for a body.
  ///
  /// - Parameters:
  ///   - contentEncoding: the value of the field Content-Encoding, in the order in which the codings were
  ///     applied.
  ///   - clock: reads a clock, in nanoseconds; the system's clock by default.
  /// - Returns: `nil` when the value names no coding other than `identity`.
  /// - Throws: `CodingFailure` when a coding is unknown or there are too many codings.
  init?(
    _ contentEncoding: String, clock: @escaping @Sendable (clockid_t) -> Int64 = ContentDecoder.systemClock
  ) throws(CodingFailure) {
    self.clock = clock
    // This check comes first: a head has room for a hundred thousand codings, and a few bytes of HPACK make
    // such a head.
    guard contentEncoding.utf8.count <= Self.mostBytes,
      contentEncoding.utf8.count(where: { $0 == 0x2c }) < Self.mostMembers
    else { throw .tooMany }
    let names = contentEncoding.split(byte: 0x2c).map { name in
      Substring(ByteClass.trimmed(name.utf8)).loweredASCII
    }
    let applied = names.filter { $0 != "identity" && !$0.isEmpty }
    if applied.isEmpty { return nil }
    guard applied.count <= Self.mostCodings else { throw .tooMany }
    for name in applied.reversed() { stages.append(Stage(coding: try Self.decoder(named: name))) }
  }

  private static func decoder(named name: String) throws(CodingFailure) -> any CodingDecoder {
    switch name {
    case "gzip", "x-gzip": try ZlibDecoder(.gzip)
    case "deflate": try ZlibDecoder(.deflate)
    case "br": try BrotliDecoder()
    case "zstd": try ZstdDecoder()
    default: throw .unknown
    }
  }

  /// Whether all codings reached their end, or no input arrived.
  var isComplete: Bool { !hasInput || stages.allSatisfy { $0.coding.isAtEnd && $0.input.isEmpty } }

  /// Decodes the next bytes of the body.
  ///
  /// - Parameters:
  ///   - input: the received bytes. The decoder removes the bytes that it takes.
  ///   - output: the buffer for the decoded bytes.
  /// - Returns: the number of decoded bytes; 0 when more input is needed.
  /// - Throws: `CodingFailure` when the bytes are not in the coding's format, or decoding takes too long.
  mutating func decode(
    _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> Int {
    if !input.isEmpty { hasInput = true }
    let size = input.count
    if size >= Self.longPiece { isExact = true }
    begun = time()
    pieces += 1
    let count = try decode(stages.count - 1, &input, into: output)
    cameIn += size - input.count
    cameOut += count
    try takeTime()
    return count
  }

  /// Adds the time since the present measurement began to `spent`, and begins the next measurement. If the
  /// monotonic clock measured `shortTime` or more, adds nothing and measures CPU time from now on. Throws
  /// `tooSlow` if decoding the body has taken too long in total.
  private mutating func takeTime() throws(CodingFailure) {
    let now = time()
    if !isExact, now - begun >= Self.shortTime {
      isExact = true
      begun = time()
      return
    }
    spent += now - begun
    begun = now
    let forBytes = Self.timePerByteIn * Int64(cameIn) + Self.timePerByteOut * Int64(cameOut)
    guard spent <= Self.longestTime + forBytes + Self.timePerPiece * Int64(pieces) else { throw .tooSlow }
  }

  /// Reads the clock with which decoding is measured at present, in nanoseconds.
  private func time() -> Int64 { clock(isExact ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) }

  private static let systemClock: @Sendable (clockid_t) -> Int64 = { clock in
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Produces output of one stage. The first stage decodes `input`. Each other stage decodes the output of
  /// the stage before it, which this function gets by calling itself.
  ///
  /// - Parameter index: the index of the stage in `stages`.
  /// - Returns: the number of bytes written to `output`; 0 when more input is needed.
  private mutating func decode(
    _ index: Int, _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> Int {
    let coding = stages[index].coding
    if index == 0 {
      let (taken, made) = try coding.decode(input, into: output)
      input = UnsafeRawBufferPointer(rebasing: input[taken...])
      return made
    }
    while true {
      var (taken, made) = (0, 0)
      var failure: CodingFailure?
      stages[index].input.withUnsafeBytes { bytes in
        do throws(CodingFailure) { (taken, made) = try coding.decode(bytes, into: output) } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      stages[index].input.removeFirst(taken)
      if made > 0 { return made }
      if !stages[index].input.isEmpty { continue }
      var piece = [UInt8](repeating: 0, count: Self.pieceSize)
      var count = 0
      piece.withUnsafeMutableBytes { bytes in
        do throws(CodingFailure) { count = try decode(index - 1, &input, into: bytes) } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      if count == 0 { return 0 }
      between += count
      guard between <= Self.mostBeforeFirst + Self.mostPerByte * cameOut else { throw .invalid }
      try takeTime()
      stages[index].input = piece[..<count]
    }
  }
}

/// Why a body could not be decoded.
enum CodingFailure: Error, Hashable, Sendable {
  /// The coding is unknown.
  case unknown
  /// The body has more codings than netopt decodes, or Content-Encoding is too long.
  case tooMany
  /// Decoding takes far longer than the body's size explains.
  case tooSlow
  /// The body is not in the format of its coding, continues after the coding's end, or has codings within
  /// codings that yield hardly any output.
  case invalid
  /// The decoder's library has no memory.
  case outOfMemory
}

/// Decodes one content coding.
protocol CodingDecoder: AnyObject {
  /// Whether the input taken so far is complete in the coding's format.
  var isAtEnd: Bool { get }

  /// Decodes until the input is used up or the output is full.
  ///
  /// - Returns: the number of input bytes taken, and the number of output bytes made. The latter is 0 only
  ///   when more input is needed, or the coding is at its end.
  /// - Throws: `invalid`, or `outOfMemory`.
  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> (taken: Int, made: Int)
}
