import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// The check of the bytes that libcurl passes to nghttp2 for a request's body.
@Suite struct SentBodyTests {
  /// A model of how libcurl 7.88 uploads over HTTP/2 (`cf_h2_send` and `data_source_read_callback` in
  /// lib/http2.c). It passes the body in parts of at most `partSize` bytes. nghttp2 takes a part in frames.
  private struct Upload {
    let length: Int
    let partSize: Int
    var check = SentBody()
    /// The positions in the body of the bytes that were sent; -1 for bytes of the head.
    var sent: [Int] = []
    /// Whether a frame was refused.
    var isRefused = false

    /// Sends the whole body. `repeats` is called after each part that nghttp2 has taken a piece of. When it
    /// returns true, libcurl passes the part once more.
    ///
    /// - Parameter repeatsHead: whether libcurl passes 300 bytes of the head as a part of the body first.
    mutating func run(_ random: inout SplitMix64, repeatsHead: Bool, repeats: (inout SplitMix64) -> Bool) {
      // libcurl counts the bytes until the announced length, whichever bytes they are.
      var left = length
      var written = 0
      check.beginStream()
      if repeatsHead { pass([Int](repeating: -1, count: 300), &left, written, &random) }
      while written < length, !isRefused, left > 0 {
        let part = Array(written..<min(written + partSize, length))
        check.take(part.count)
        var rest = part[...]
        while !rest.isEmpty, !isRefused, left > 0 {
          let taken = pass(rest, &left, written, &random)
          // libcurl reports an error that means "later", and counts nothing as written.
          if repeats(&random) { continue }
          rest = rest.dropFirst(taken)
          written += taken
        }
      }
    }

    /// Passes bytes to nghttp2, which takes some of them. Returns how many.
    @discardableResult
    private mutating func pass(
      _ bytes: some Collection<Int>, _ left: inout Int, _ written: Int, _ random: inout SplitMix64
    ) -> Int {
      check.beginPart()
      var taken = 0
      repeat {
        let count = min(bytes.count - taken, 1 + Int(random.below(1024)))
        guard check.frame(count, written: written) else {
          isRefused = true
          return taken
        }
        sent += bytes.dropFirst(taken).prefix(count)
        left -= count
        taken += count
      } while taken < bytes.count && left > 0 && random.below(3) > 0
      // libcurl calls nghttp2_session_resume_data once more.
      check.beginPart()
      return taken
    }
  }

  @Test("the whole body passes when libcurl repeats nothing", arguments: 1...200 as ClosedRange<UInt64>)
  func right(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var upload = Upload(length: Int(random.below(10_000)), partSize: 1 + Int(random.below(4096)))
    upload.run(&random, repeatsHead: false) { _ in false }
    #expect(!upload.isRefused && upload.sent == Array(0..<upload.length), "seed \(seed)")
  }

  @Test(
    "a repeated part is refused before the announced length is sent",
    arguments: 1...500 as ClosedRange<UInt64>)
  func repeated(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var upload = Upload(length: 1 + Int(random.below(10_000)), partSize: 1 + Int(random.below(4096)))
    let often = 1 + random.below(20)
    let repeatsHead = random.below(4) == 0
    upload.run(&random, repeatsHead: repeatsHead) { $0.below(often) == 0 }
    let isWhole = upload.sent == Array(0..<upload.length)
    // A repeated last part changes nothing when the announced length has been sent.
    #expect(isWhole || upload.isRefused && upload.sent.count < upload.length, "seed \(seed)")
  }

  @Test("a body that begins again on a new stream passes", arguments: 1...50 as ClosedRange<UInt64>)
  func rewound(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var upload = Upload(length: Int(random.below(10_000)), partSize: 1 + Int(random.below(4096)))
    upload.run(&random, repeatsHead: false) { _ in false }
    upload.check.rewind()
    upload.sent = []
    upload.run(&random, repeatsHead: false) { _ in false }
    #expect(!upload.isRefused && upload.sent == Array(0..<upload.length), "seed \(seed)")
  }
}
