import NetOptCaching
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Answers that a change of their resource overtakes while they are under way or being stored.
@Suite struct OvertakenAnswersTests {
  /// An origin that counts the changes of each resource, and answers with the count.
  private final class Origin: Sendable {
    private let versions = Locked<[String: Int]>([:])
    private let answered = Locked<[String: Int]>([:])
    private let random: Locked<SplitMix64>

    init(seed: UInt64) { random = Locked(SplitMix64(seed: seed)) }

    func draw(_ count: Int) -> Int {
      random.withLock { random in Int(random.next() % UInt64(count)) }
    }

    /// The count that a call must not fall behind which begins now.
    func floor(of target: String) -> Int { answered.withLock { $0[target, default: 0] } }

    /// A call that changed the resource has been answered.
    func hasAnswered(_ target: String, _ version: Int) {
      answered.withLock { $0[target] = max($0[target, default: 0], version) }
    }

    func answer(_ request: NetOptRequest) async -> NetOptResponse {
      let target = request.url.target
      await pause()
      let version = versions.withLock { versions in
        if request.method != .get { versions[target, default: 0] += 1 }
        return versions[target, default: 0]
      }
      await pause()
      var fields: HeaderFields = ["Cache-Control": "max-age=600"]
      if request.method == .post { fields["Content-Location"] = target }
      return CacheLab.response(request, 200, fields, "\(version)")
    }

    private func pause() async { for _ in 0..<draw(20) { await Task.yield() } }
  }

  @Test("a call that begins after a change was answered gets nothing older", arguments: [false, true])
  func nothingOlder(onDisk: Bool) async throws {
    let origin = Origin(seed: 11)
    let directory = try TemporaryDirectory.make("overtaken")
    let lab = try CacheLab { cache in
      if onDisk { cache.directory = directory }
    } _: { request, _ in
      await origin.answer(request)
    }
    for round in 0..<(onDisk ? 60 : 200) {
      let target = "/thing?\(round)"
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            for _ in 0..<12 {
              let method: NetOptRequest.Method = [.get, .get, .get, .get, .post, .delete][origin.draw(6)]
              let floor = origin.floor(of: target)
              let (response, text) = try await lab.ask(method, target)
              let version = try #require(Int(text))
              #expect(version >= floor, "\(method) \(target): \(response.cacheStatus.text)")
              if method != .get { origin.hasAnswered(target, version) }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    await lab.client.shutdown()
  }

  @Test("the answer to a change that another change overtakes is not stored")
  func overtakenChange() async throws {
    let isDeleted = Latch()
    let lab = try CacheLab { request, _ throws(NetOptError) in
      guard request.method != .delete else { return CacheLab.response(request, 204) }
      if request.method == .post { try? await isDeleted.wait() }
      return CacheLab.response(
        request, isDeleted.opened && request.method == .get ? 404 : 200,
        ["Cache-Control": "max-age=600", "Content-Location": "/thing"], "thing")
    }
    async let change = lab.ask(.post)
    try await wait(for: "the POST") { lab.sent == 1 }
    _ = try await lab.ask(.delete)
    isDeleted.open()
    _ = try await change
    #expect(try await lab.ask().response.status == 404)
    await lab.client.shutdown()
  }

  @Test(
    "a change with a token against forgery reaches what its user has stored",
    arguments: ["X-CSRF-Token", "X-XSRF-TOKEN", "RequestVerification-Csrf", "Jenkins-Crumb"])
  func forgeryToken(name: String) async throws {
    let version = Locked(0)
    let lab = try CacheLab { request, _ throws(NetOptError) in
      if request.method == .post { version.withLock { $0 += 1 } }
      return CacheLab.response(request, 200, ["Cache-Control": "max-age=600"], "\(version.withLock(\.self))")
    }
    let (user, other): (HeaderFields, HeaderFields) = (["Cookie": "a"], ["Cookie": "b"])
    for (number, fields) in [user, user + [name: "t"]].enumerated() {
      #expect(try await lab.ask(.get, "/thing", fields).text == "\(number)")
      #expect(try await lab.ask(.post, "/thing", user + [name: "u\(number)"]).text == "\(number + 1)")
      #expect(try await lab.ask(.get, "/thing", fields).text == "\(number + 1)")
    }
    // Without other credentials it tells users apart.
    #expect(try await lab.ask(.get, "/thing", other).text == "2")
    _ = try await lab.ask(.post, "/thing", user)
    #expect(try await lab.ask(.get, "/thing", [name: "t"]).text == "3")
    _ = try await lab.ask(.post, "/thing", user)
    #expect(try await lab.ask(.get, "/thing", [name: "u"]).text == "4")
    #expect(try await lab.ask(.get, "/thing", [name: "t"]).text == "3")
    await lab.client.shutdown()
  }
}
