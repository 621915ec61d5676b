import NetOptCore
import Testing

@testable import NetOptEngine

/// What a body takes while its reader is behind, and that nothing of it is lost on the way.
@Suite struct BodyChannelTests {
  private let channel = BodyChannel(lowWater: 0, timings: Timings())

  private func read() -> [[UInt8]] {
    var chunks: [[UInt8]] = []
    while case .chunk(let chunk, _) = channel.poll() { chunks.append(chunk) }
    return chunks
  }

  private func push(_ chunks: [[UInt8]]) -> Int {
    channel.push(chunks, end: nil, isPaused: false, timings: Timings()).unread
  }

  @Test(
    "a body takes about what it holds and comes whole, however it is cut", arguments: 0..<20 as Range<UInt64>)
  func aBodyTakesWhatItHolds(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let spare = SpareChunks()
    var received = ReceivedBody(spare)
    var sent: [UInt8] = []
    let longest = [1, 10, 1000, 16_384, 40_000, 200_000].randomElement(using: &random) ?? 1
    for _ in 0..<(longest < 100 ? 20_000 : 60) {
      let piece = (0..<Int.random(in: 1...longest, using: &random)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      sent += piece
      piece.withUnsafeBytes { received.append($0, ofLength: nil) }
      // A turn of the loop may bring several pieces.
      if Int.random(in: 0..<3, using: &random) > 0 { _ = push(received.takeChunks()) }
    }
    #expect(push(received.takeChunks()) == sent.count)
    let chunks = read()
    #expect(chunks.flatMap { $0 } == sent)
    let room = chunks.reduce(0) { $0 + $1.capacity }
    // Twice for neighbours of which one is half full, twice for an array that has grown.
    #expect(room <= 4 * sent.count + 128 * 1024, "\(room) bytes for \(sent.count), seed \(seed)")
  }

  @Test(
    "a small piece has no room for more where its reader keeps it",
    arguments: [1_000_000, 60_000, 110_000, nil])
  func aSmallPieceIsSmall(_ length: Int64?) {
    var received = ReceivedBody(SpareChunks())
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
