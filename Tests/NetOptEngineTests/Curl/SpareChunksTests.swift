import Testing

@testable import NetOptEngine

@Suite struct SpareChunksTests {
  private let spare = SpareChunks()

  /// Appends a byte to a chunk, and returns the address of the chunk's bytes. Chunks with the same address
  /// use the same memory, one after the other.
  private func address(of chunk: inout [UInt8]) -> UnsafeMutableRawPointer? {
    chunk.append(0)
    return chunk.withUnsafeMutableBytes { $0.baseAddress }
  }

  @Test("a new chunk is empty and has the requested capacity")
  func newChunk() {
    let chunk = spare.take(4096)
    #expect(chunk.isEmpty)
    #expect(chunk.capacity >= 4096)
  }

  @Test("chunks that nothing uses any more are reused, so 100 chunks share 8 pieces of memory")
  func unusedChunks() {
    var addresses: Set<UnsafeMutableRawPointer?> = []
    for _ in 0..<100 {
      var chunk = spare.take(4096)
      #expect(chunk.isEmpty)
      addresses.insert(address(of: &chunk))
      spare.handOut(chunk)
    }
    #expect(addresses.count == 8)
  }

  @Test("a chunk that is still in use is not reused")
  func usedChunks() {
    var kept: [[UInt8]] = []
    for index in 0..<100 {
      var chunk = spare.take(4096)
      chunk.append(UInt8(index))
      spare.handOut(chunk)
      kept.append(chunk)
    }
    #expect(kept.map(\.count) == Array(repeating: 1, count: 100))
    #expect(kept.flatMap { $0 } == Array(0..<100))
  }

  @Test("removeAll drops all spare chunks")
  func removesAll() {
    for _ in 0..<8 { spare.handOut(spare.take(4096)) }
    spare.removeAll()
    #expect(spare.take(16).capacity < 4096)
  }
}
