import NetOptCore
import Testing

@testable import NetOptEngine

/// The memory that a response's body takes while its reader has not read it. The tests also check that the
/// reader gets all bytes.
@Suite struct BodyChannelTests {
  /// The channel. `lowWater` does not matter, because the tests pause no transfer.
  private let channel = BodyChannel(lowWater: 0, timings: Timings())

  /// Takes all chunks out of the channel.
  private func read() -> [[UInt8]] {
    var chunks: [[UInt8]] = []
    while case .chunk(let chunk, _) = channel.poll() { chunks.append(chunk) }
    return chunks
  }

  /// Puts chunks into the channel.
  ///
  /// - Returns: the number of unread bytes in the channel.
  private func push(_ chunks: [[UInt8]]) -> Int {
    channel.push(chunks, end: nil, isPaused: false, timings: Timings()).unread
  }

  @Test(
    "an unread body is complete and takes at most 4 times its size plus 128 KiB",
    arguments: 0..<20 as Range<UInt64>)
  func unreadBody(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let spare = SpareChunks()
    var received = ReceivedBody(spare)
    var sent: [UInt8] = []
    // The maximum size of a piece that libcurl delivers, in bytes.
    let longest = [1, 10, 1000, 16_384, 40_000, 200_000].randomElement(using: &random) ?? 1
    for _ in 0..<(longest < 100 ? 20_000 : 60) {
      let piece = (0..<Int.random(in: 1...longest, using: &random)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      sent += piece
      piece.withUnsafeBytes { received.append($0, ofLength: nil) }
      // Several pieces may arrive in one turn of the event loop.
      if Int.random(in: 0..<3, using: &random) > 0 { _ = push(received.takeChunks()) }
    }
    #expect(push(received.takeChunks()) == sent.count)
    let chunks = read()
    #expect(chunks.flatMap { $0 } == sent)
    // The memory of all chunks, in bytes.
    let room = chunks.reduce(0) { $0 + $1.capacity }
    // Two neighbouring chunks together have more than 64 KiB, so the chunks are at least half full on
    // average. An array may double its capacity when it grows. Each of these facts gives a factor of 2.
    #expect(room <= 4 * sent.count + 128 * 1024, "\(room) bytes for \(sent.count), seed \(seed)")
  }

  /// The announced length of the whole body in bytes; `nil` for none.
  @Test(
    "chunks of 1 byte have a mean capacity of at most 64 bytes, whatever length is announced",
    arguments: [1_000_000, 60_000, 110_000, nil])
  func smallChunks(_ length: Int64?) {
    var received = ReceivedBody(SpareChunks())
    // The memory of all chunks, in bytes.
    var room = 0
    for byte in 0..<200 {
      withUnsafeBytes(of: UInt8(byte)) { received.append($0, ofLength: length) }
      _ = push(received.takeChunks())
      let chunks = read()
      #expect(chunks == [[UInt8(byte)]])
      room += chunks.reduce(0) { $0 + $1.capacity }
    }
    #expect(room <= 200 * 64)
  }
}
