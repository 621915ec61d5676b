import Glibc
import NetOptCore

/// Undoes the content codings of one body (RFC 9110, section 8.4), as it comes.
///
/// libcurl could do that, but takes a body that was cut short for a whole one: it does not look whether the coding came to its end.
/// Confined to the loop.
struct ContentDecoder {
  /// The codings that are asked for and undone.
  static let codings = "gzip, deflate, br, zstd"
  /// More codings than this on one body are refused. Each has a window of up to 16 MiB, which a few bytes can fill.
  static let mostCodings = 2
  /// More members of the field than this are refused, empty ones and `identity` included, and more bytes than this: a cache reads no longer list, and
  /// would take the body for one that is still coded.
  static let mostMembers = 64
  static let mostBytes = 1024
  /// How much codings may give to each other for each byte that comes out, and beyond that once. What a coding adds to what it cannot shrink
  /// is far less. Of empty blocks within empty blocks hardly anything ever comes out, and reading 4 MiB of them takes 0.15 s. A coding may want a
  /// block as a whole before it gives anything, 128 KiB of Zstandard (RFC 8878, section 3.1.1.2.4).
  private static let mostPerByte = 2
  private static let mostBeforeFirst = 256 * 1024
  /// How long decoding a body may take on the loop, besides a time for each byte that came, 5 MB a second, and for each that came out, 40 MB a
  /// second: slow machines do several times as many. Blocks can be made of which each byte takes a microsecond and more. Each piece has a time of
  /// its own, about that of the head of an HTTP/2 frame, 9 bytes. Measuring it takes less, also on a slow machine.
  private static let longestTime: Int64 = 20_000_000
  private static let timePerByteIn: Int64 = 200
  private static let timePerByteOut: Int64 = 25
  private static let timePerPiece: Int64 = 2000
  /// From this size on a piece is measured by the thread's own time, which takes a system call.
  private static let longPiece = 1024
  /// What takes longer than this by the clock may have been interrupted.
  private static let shortTime: Int64 = 50_000
  /// The size of what one coding gives to the next.
  private static let pieceSize = 16 * 1024

  private struct Stage {
    let coding: any CodingDecoder
    /// What the stage before gave and this one has not taken.
    var input: ArraySlice<UInt8> = []
  }

  /// The coding that was applied last comes first.
  private var stages: [Stage] = []
  private var hasInput = false
  /// How much codings gave to each other, and how much came out.
  private var (between, cameOut) = (0, 0)
  private var cameIn = 0
  private var pieces = 0
  /// How long decoding has taken, and when it last began, in nanoseconds.
  private(set) var spent: Int64 = 0
  private var begun: Int64 = 0
  /// Whether that is the thread's own time, from which other threads take nothing. Short pieces are measured by the clock until one takes
  /// long.
  private var isExact = false
  /// Reads a clock, in nanoseconds (clock_gettime(2)).
  private let clock: @Sendable (clockid_t) -> Int64

  /// - Parameters:
  ///   - contentEncoding: the value of the field Content-Encoding, in the order in which the codings were applied.
  ///   - clock: reads a clock, in nanoseconds; the system's by default.
  /// - Returns: `nil` when nothing is to be undone.
  /// - Throws: `CodingFailure` when a coding is not known.
  init?(
    _ contentEncoding: String, clock: @escaping @Sendable (clockid_t) -> Int64 = ContentDecoder.systemClock
  ) throws(CodingFailure) {
    self.clock = clock
    let names = contentEncoding.split(byte: 0x2c).map { name in
      Substring(ByteClass.trimmed(name.utf8)).loweredASCII
    }
    let applied = names.filter { $0 != "identity" && !$0.isEmpty }
    if applied.isEmpty { return nil }
    // Before any is made: a head has room for a hundred thousand.
    guard applied.count <= Self.mostCodings,
      contentEncoding.utf8.count(where: { $0 == 0x2c }) < Self.mostMembers,
      contentEncoding.utf8.count <= Self.mostBytes
    else { throw .tooMany }
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

  /// Whether all codings came to their end, or nothing came at all.
  var isComplete: Bool { !hasInput || stages.allSatisfy { $0.coding.isAtEnd && $0.input.isEmpty } }

  /// Decodes some bytes.
  ///
  /// - Parameters:
  ///   - input: what came; what was taken of it is dropped.
  ///   - output: room for what it stands for.
  /// - Returns: how much there is; 0 when more input is needed.
  /// - Throws: `CodingFailure` when the bytes are not in the coding's format.
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

  /// Adds the time since it was last taken.
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

  private func time() -> Int64 { clock(isExact ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) }

  private static let systemClock: @Sendable (clockid_t) -> Int64 = { clock in
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

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
  /// Its coding is not one that is known here.
  case unknown
  /// It has more codings than are undone.
  case tooMany
  /// Undoing it takes far longer than its size explains.
  case tooSlow
  /// It is not in the format of its coding, or goes on behind the coding's end.
  case invalid
  /// The library has no memory for it.
  case outOfMemory
}

/// Undoes one content coding.
protocol CodingDecoder: AnyObject {
  /// Whether the coding came to its end.
  var isAtEnd: Bool { get }

  /// Decodes until the input is used up or the output is full.
  ///
  /// - Returns: how much was taken and made. Nothing is made only when more input is needed.
  /// - Throws: `invalid`.
  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> (taken: Int, made: Int)
}
