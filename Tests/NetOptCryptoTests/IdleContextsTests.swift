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

  /// Digests a message, to its end or not.
  private func digest(_ algorithm: DigestAlgorithm, finishes: Bool) throws {
    var digest = try Digest(algorithm)
    digest.update("a secret")
    if finishes { _ = try digest.finish() }
  }

  @Test func theContextOfAMessageThatEndedIsKept() throws {
    let idle = try drain(.sha1)
    try digest(.sha1, finishes: true)
    #expect(idle.take() != nil)
    #expect(idle.take() == nil)
  }

  /// Its bytes are still in there.
  @Test func theContextOfAnUnfinishedMessageIsFreed() throws {
    let idle = try drain(.sha1)
    try digest(.sha1, finishes: false)
    #expect(idle.take() == nil)
    // One that was kept and is taken again for a message that does not end, too.
    try digest(.sha1, finishes: true)
    try digest(.sha1, finishes: false)
    #expect(idle.take() == nil)
  }

  /// libcrypto does not wipe its last block.
  @Test func noContextOfSHA512IsKept() throws {
    let idle = try drain(.sha512)
    try digest(.sha512, finishes: true)
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
