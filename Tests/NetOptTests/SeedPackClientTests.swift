import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests seed packs, which are directories with resources that are shipped with a service, through a client.
@Suite struct SeedPackClientTests {
  /// Writes a seed pack with version 5 of the resource `app`. Returns its directory.
  private func pack() throws -> String {
    let directory = try TemporaryDirectory.make("seeds")
    let body = Array("shipped".utf8)
    let digest = try Digest.of(body, .sha256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    try Data(body).write(to: URL(filePath: directory + "/app.js"))
    let index = """
      {"schema":1,"issued":1795219000,"resources":[{"key":"app","parameters":"","version":5,"file":"app.js",\
      "sha256":"\(digest)"}]}
      """
    try Data(index.utf8).write(to: URL(filePath: directory + "/index.json"))
    return directory
  }

  @Test("a client serves a shipped resource until it has fetched a newer version")
  func shippedVersion() async throws {
    let directory = try pack()
    let lab = try CacheLab({ $0.seedPacks = [directory] }) { (request, number) throws(NetOptError) in
      CacheLab.response(request, 200, [:], "answer \(number)")
    }
    var versions = CacheOptions.Versions()
    versions.name = "app"
    let options = CacheOptions(.versioned(versions))
    func get(_ version: Int) async throws -> String {
      try await lab.ask(.get, "/app.js?cachevers=\(version)") { $0.options.cache = options }.text
    }
    #expect(try await get(5) == "shipped")
    #expect(lab.sent == 0)
    // The newer version is fetched and stored. From then on, it also answers requests for version 5.
    #expect(try await get(6) == "answer 1")
    #expect(try await get(5) == "answer 1")
    await lab.client.shutdown()
  }

  /// The signature covers the index, and the index contains the SHA-256 of each body.
  @Test("a client uses a seed pack signed with a trusted key, and refuses another key or a changed index")
  func signedPack() async throws {
    let (signer, stranger) = (try ListSigner(), try ListSigner())
    let directory = try pack()
    let path = directory + "/index.json"
    let index = [UInt8](try Data(contentsOf: URL(filePath: path)))
    try Data(try signer.signature(of: index)).write(to: URL(filePath: path + ".minisig"))
    func client(_ keys: [MinisignPublicKey]) throws(NetOptError) -> NetOptClient {
      var configuration = ClientConfiguration()
      configuration.list = .none
      configuration.rankingHistory = .none
      configuration.cache = ClientConfiguration.Cache()
      configuration.cache?.seedPacks = [directory]
      configuration.trustedKeys = keys
      return try NetOptClient(configuration)
    }
    let good = try client([stranger.publicKey, signer.publicKey])
    #expect(good.responseCache?.store.seeds.map(\.count) == [1])
    await good.shutdown()
    let other = #expect(throws: NetOptError.self) { try client([stranger.publicKey]) }
    #expect(other?.code == .invalidSignature && other?.message.contains(path) == true)
    try Data(index + [0x20]).write(to: URL(filePath: path))
    #expect(#expect(throws: NetOptError.self) { try client([signer.publicKey]) }?.code == .invalidSignature)
  }

  @Test("a client with trusted keys refuses an unsigned seed pack")
  func unsignedPack() throws {
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.cache = ClientConfiguration.Cache()
    configuration.cache?.seedPacks = [try pack()]
    configuration.trustedKeys = [
      try MinisignPublicKey("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
    ]
    let error = #expect(throws: NetOptError.self) { try NetOptClient(configuration) }
    #expect(error?.code == .invalidSignature)
    #expect(error?.message.contains("is not signed") == true)
  }
}
