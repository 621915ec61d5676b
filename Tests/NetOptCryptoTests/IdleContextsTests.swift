import Testing

@testable import NetOptCrypto

/// The contexts of libcrypto that a finished digest leaves to the next caller (`IdleContexts`).
@Suite struct IdleContextsTests {
  /// Removes all idle contexts of an algorithm, and returns the store that had them. A test then sees whether
  /// a digest has put a context into the store.
  private func drain(_ algorithm: DigestAlgorithm) throws -> IdleContexts<Digest.Context> {
    let idle = try algorithm.fetched.idleContexts
    while idle.take() != nil {}
    return idle
  }

  /// Begins the digest of a message.
  ///
  /// - Parameter finishes: whether to finish the digest. If false, the digest is released unfinished.
  private func digest(_ algorithm: DigestAlgorithm, finishes: Bool) throws {
    var digest = try Digest(algorithm)
    digest.update("a secret")
    if finishes { _ = try digest.finish() }
  }

  @Test("the context of a finished message is kept")
  func finished() throws {
    let idle = try drain(.sha1)
    try digest(.sha1, finishes: true)
    #expect(idle.take() != nil)
    #expect(idle.take() == nil)
  }

  /// The context still contains bytes of the message. Freeing the context wipes them.
  @Test("the context of an unfinished message is freed")
  func unfinished() throws {
    let idle = try drain(.sha1)
    try digest(.sha1, finishes: false)
    #expect(idle.take() == nil)
    // The first digest leaves its context, and the second digest uses this context and does not finish.
    try digest(.sha1, finishes: true)
    try digest(.sha1, finishes: false)
    #expect(idle.take() == nil)
  }

  /// When a SHA-512 digest is finished, libcrypto leaves the last block of the message in the context.
  /// Freeing the context wipes the block.
  @Test("a context of SHA-512 is not kept")
  func sha512() throws {
    let idle = try drain(.sha512)
    try digest(.sha512, finishes: true)
    #expect(idle.take() == nil)
  }

  @Test("at most 16 contexts are kept, and the last one is taken first")
  func limit() throws {
    let idle = IdleContexts<Int>()
    for number in 0..<40 { idle.put(back: number) }
    var taken: [Int] = []
    while let number = idle.take() { taken.append(number) }
    #expect(taken == (0..<16).reversed())
  }
}
