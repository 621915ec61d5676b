import Testing

@testable import NetOptCrypto

/// What is kept of digests for the next caller.
@Suite struct IdleContextsTests {
  /// Takes all contexts out that an algorithm has, so that the ones to come can be counted.
  private func drain(_ algorithm: DigestAlgorithm) throws -> IdleContexts<Digest.Context> {
    let idle = try algorithm.fetched.idle
    while idle.take() != nil {}
    return idle
  }

  @Test func theContextOfAMessageThatEndedIsKept() throws {
    let idle = try drain(.sha1)
    var digest = try Digest(.sha1)
    digest.update("a message")
    _ = try digest.finish()
    _ = consume digest
    #expect(idle.take() != nil)
    #expect(idle.take() == nil)
  }

  /// Its bytes are still in there.
  @Test func theContextOfAnUnfinishedMessageIsFreed() throws {
    let idle = try drain(.sha1)
    var digest = try Digest(.sha1)
    digest.update("a secret")
    _ = consume digest
    #expect(idle.take() == nil)
    // One that was kept and is taken again for a message that does not end, too.
    var first = try Digest(.sha1)
    _ = try first.finish()
    _ = consume first
    var second = try Digest(.sha1)
    second.update("a secret")
    _ = consume second
    #expect(idle.take() == nil)
  }

  /// libcrypto does not wipe its last block.
  @Test func noContextOfSHA512IsKept() throws {
    let idle = try drain(.sha512)
    var digest = try Digest(.sha512)
    digest.update("a secret")
    _ = try digest.finish()
    _ = consume digest
    #expect(idle.take() == nil)
  }

  @Test func noMoreAreKeptThanAreOfUse() throws {
    let idle = IdleContexts<Int>()
    for number in 0..<40 { idle.put(back: number) }
    var taken: [Int] = []
    while let number = idle.take() { taken.append(number) }
    #expect(taken == (0..<16).reversed())
  }
}
