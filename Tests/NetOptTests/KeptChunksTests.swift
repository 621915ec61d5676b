import NetOptCore
import Testing

@testable import NetOpt

/// Tests `KeptChunks`, which holds a body on its way to the reader, and until the cache has stored it.
@Suite struct KeptChunksTests {
  @Test("an empty chunk does not hide the chunks behind it")
  func anEmptyPiece() {
    var chunks = KeptChunks()
    let large = [UInt8](repeating: 1, count: 70_000)
    for piece in [large, [], large] { chunks.append(piece) }
    #expect(chunks.take() == large)
    #expect(chunks.take() == large)
    #expect(chunks.take() == nil)
  }

  @Test(
    "the reader and the cache get every byte once, and the body is held only once for both",
    arguments: 0..<60 as Range<UInt64>)
  func nothingIsLost(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var chunks = KeptChunks()
    var sent: [UInt8] = []
    var read: [UInt8] = []
    // The longest piece in bytes.
    let longest = [0, 1, 100, 40_000].randomElement(using: &random) ?? 1
    // Whether the chunks are kept until the end of the test. If not, the cache stops keeping them at step
    // `end` or later.
    let keeps = Bool.random(using: &random)
    let end = Int.random(in: 0..<150, using: &random)
    for step in 0..<150 {
      // A piece comes from the server, the reader takes a chunk, or the cache stops keeping chunks.
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        let piece = (0..<Int.random(in: 0...longest, using: &random)).map {
          UInt8(truncatingIfNeeded: $0 &* 7 &+ step)
        }
        chunks.append(piece)
        sent += piece
      case 1:
        if let chunk = chunks.take() {
          #expect(!chunk.isEmpty)
          read += chunk
        } else {
          #expect(read == sent, "seed \(seed), step \(step)")
        }
      default:
        if !keeps, step >= end { chunks.stopKeeping() }
      }
      let held = chunks.all.reduce(0) { $0 + $1.count }
      // While chunks are kept, all bytes are held. Afterwards only those are held that the reader has not
      // taken. But a chunk of at most 65,536 bytes of which the reader has taken a part is held as a whole.
      #expect(chunks.areKept ? held == sent.count : held <= sent.count - read.count + 65_536)
      // Small pieces are joined to larger chunks.
      #expect(chunks.all.count <= 2 + 2 * held / 65_536)
      if step % 30 == 29 { #expect(Array(sent.suffix(held)) == chunks.all.flatMap { $0 }) }
    }
    while let chunk = chunks.take() { read += chunk }
    #expect(read == sent)
  }
}
