import NetOptCore
import NetOptTestSupport
import Testing

@Suite struct StubResolverTests {
  private let address = IPAddress(v4: 0xc000_0201)

  /// The code of the error with which a look-up fails. Records an issue if the look-up succeeds.
  private func failure(_ resolver: StubResolver, _ name: String) async -> NetOptError.Code? {
    await #expect(throws: NetOptError.self) { try await resolver.resolve(name, fresh: false) }?.code
  }

  @Test("the stub resolver answers from its table and records look-ups")
  func answersFromTable() async throws {
    let resolver = StubResolver(
      ["a.example": .addresses([address]), "b.example": .failure], timeToLive: .seconds(7))
    let answer = try await resolver.resolve("a.example", fresh: true)
    #expect(answer == ResolvedAddresses([address], timeToLive: .seconds(7)))
    #expect(await failure(resolver, "b.example") == .resolverFailed)
    #expect(await failure(resolver, "c.example") == .nameNotFound)
    resolver.set(.notFound, for: "a.example")
    #expect(await failure(resolver, "a.example") == .nameNotFound)
    #expect(
      resolver.lookups == [
        .init("a.example", fresh: true), .init("b.example"), .init("c.example"), .init("a.example"),
      ])
  }

  @Test("a silent look-up ends when its task is cancelled") func silentLookUp() async throws {
    let resolver = StubResolver(["a.example": .silence])
    let task = Task { await failure(resolver, "a.example") }
    try await wait(for: "the look-up") { resolver.lookups.count == 1 }
    task.cancel()
    #expect(await task.value == .cancelled)
  }

  @Test("shutdown ends open look-ups and fails later ones") func shutdownEndsLookUps() async throws {
    let resolver = StubResolver(["a.example": .silence])
    let task = Task { await failure(resolver, "a.example") }
    try await wait(for: "the look-up") { resolver.lookups.count == 1 }
    await resolver.shutdown()
    #expect(await task.value == .shutDown)
    #expect(await failure(resolver, "a.example") == .shutDown)
    #expect(resolver.lookups.count == 1)
  }
}
