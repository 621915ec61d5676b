import FoundationEssentials
import Glibc
import NetOptCore
import NetOptSQLite
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptSigning

@Suite struct NonceStoreTests {
  /// The path for a new store, in a directory of its own.
  private func path() throws -> String { try TemporaryDirectory.make("nonces") + "/nonces.db" }

  /// A store of each kind. Each has room for three nonces.
  private func stores() throws -> [any NonceStore] {
    [MemoryNonceStore(limit: 3), try SQLiteNonceStore(try path(), limit: 3)]
  }

  @Test("both stores accept a nonce once per key")
  func nonces() throws {
    for store in try stores() {
      #expect(try store.record("n", of: "a", created: 1, until: 100, now: 1))
      #expect(try !store.record("n", of: "a", created: 1, until: 100, now: 1))
      #expect(try store.record("n", of: "b", created: 1, until: 100, now: 1))
    }
  }

  @Test("a full store throws until a nonce expires")
  func fullStore() throws {
    for store in try stores() {
      for number in 1...3 { #expect(try store.record("\(number)", of: "a", created: 1, until: 100, now: 1)) }
      #expect(throws: NonceStoreError.self) {
        try store.record("4", of: "a", created: 1, until: 100, now: 50)
      }
      #expect(throws: NonceStoreError.self) {
        try store.record("4", of: "a", created: 1, until: 100, now: 100)
      }
      #expect(try store.record("4", of: "a", created: 2, until: 200, now: 101))
      #expect(try store.record("1", of: "a", created: 2, until: 200, now: 101))
    }
  }

  /// To SQLite, such a table has 10^18 rows or more. `Database` interrupts a statement on it.
  @Test("a store throws when the pages of one of its tables form cycles", arguments: ["size", "forgotten"])
  func circularTable(name: String) throws {
    let path = try path()
    var root: Int64?
    do {
      #expect(try SQLiteNonceStore(path).record("n", of: "a", created: 1, until: 100, now: 1))
      let database = try Database(path)
      try database.execute("PRAGMA journal_mode = DELETE")
      root = try Statement("SELECT rootpage FROM sqlite_master WHERE name = ?", in: database).integer(
        .text(name))
    }
    try CircularTable.write(to: path, root: Int(try #require(root)), row: [3, 0, 1, 1])
    let store = try SQLiteNonceStore(path)
    let error = #expect(throws: NonceStoreError.self) {
      try store.record("m", of: "a", created: 1, until: 100, now: 1)
    }
    #expect("\(error as Any)".contains("cycle"), "\(error as Any)")
  }

  @Test(
    "no signature is accepted twice, wherever the clock is set and whatever the windows of the verifiers",
    arguments: UInt64(1)...8)
  func replays(seed: UInt64) throws {
    let path = try path()
    for stores in [[MemoryNonceStore()], [try SQLiteNonceStore(path), try SQLiteNonceStore(path)]]
      as [[any NonceStore]]
    {
      var random = SplitMix64(seed: seed)
      // In every second run, all verifiers have the same window and the clock only advances. The stores must
      // not refuse any new nonce then.
      let isRegular = seed % 2 == 0
      let windows: [Int64] = isRegular ? [60] : [10, 60, 300]
      var now: Int64 = 1_000_000
      var accepted: Set<String> = []
      var signatures: [(nonce: String, created: Int64)] = []
      for step in 0..<1000 {
        switch random.below(12) {
        case 0: now += Int64(random.below(400))
        case 1 where !isRegular: now -= Int64(random.below(400))
        default: now += Int64(random.below(5))
        }
        // The clocks of the signers are ahead or behind by up to 60 s.
        if random.below(2) == 0 { signatures.append(("n\(step)", now + Int64(random.below(121)) - 60)) }
        guard !signatures.isEmpty else { continue }
        // One of the last 20 signatures. Older ones are normally outside of every window.
        let signature = signatures[
          signatures.count - 1 - Int(random.below(UInt64(min(signatures.count, 20))))]
        let window = windows[Int(random.below(UInt64(windows.count)))]
        guard abs(now - signature.created) <= window else { continue }
        let store = stores[Int(random.below(UInt64(stores.count)))]
        let run = "seed \(seed), step \(step), \(type(of: store))"
        do throws(NonceStoreError) {
          let isNew = try store.record(
            signature.nonce, of: "a", created: signature.created, until: signature.created + window, now: now)
          if isNew {
            #expect(accepted.insert(signature.nonce).inserted, "\(run)")
          } else {
            #expect(accepted.contains(signature.nonce), "\(run)")
          }
        } catch {
          #expect(!isRegular, "\(run): \(error)")
        }
      }
      #expect(accepted.count > 10)
    }
  }

  /// The store has removed a nonce that expired for the verifier with the short window. The other verifier
  /// would still accept the signature, but the store cannot tell whether its nonce was used.
  @Test("a verifier with a longer window refuses what a shorter one has let the store forget")
  func windows() throws {
    for store in [MemoryNonceStore(), try SQLiteNonceStore(try path())] as [any NonceStore] {
      let keys = KeyRing([GoldenVectorTests.key])
      let signed = try NetOpt1().sign(
        GoldenVectorTests.request, with: GoldenVectorTests.key, at: GoldenVectorTests.moment)
      var request = GoldenVectorTests.request
      for field in signed.headers { request.headers[field.name] = field.value }
      let made = GoldenVectorTests.moment.now
      var policy = SignatureVerifier.Policy()
      policy.window = 10
      #expect(
        SignatureVerifier(keys: keys, nonces: store, policy: policy).verify(request, .init(now: made)).isValid
      )
      // The next record makes the store remove the nonces that have expired.
      #expect(try store.record("another", of: "a", created: made + 20, until: made + 30, now: made + 20))
      let report = SignatureVerifier(keys: keys, nonces: store).verify(request, .init(now: made + 21))
      #expect(report.reason == .nonceStoreFailed && report.assurance == .none)
      #expect(report.checks.last?.detail.contains("Sign the request again") == true, "\(report.checks)")
    }
  }

  @Test("a known nonce is a replay, and a nonce that may have been forgotten is an error")
  func forgotten() throws {
    let path = try path()
    for stores in [[MemoryNonceStore()], [try SQLiteNonceStore(path), try SQLiteNonceStore(path)]]
      as [[any NonceStore]]
    {
      let (first, last) = (stores[0], stores[stores.count - 1])
      #expect(try first.record("old", of: "a", created: 1, until: 100, now: 1))
      // This call has a clock that is ahead. The store removes the nonces that have expired by this clock.
      #expect(try first.record("kept", of: "a", created: 900, until: 5000, now: 1000))
      #expect(throws: NonceStoreError.self) {
        try last.record("old", of: "a", created: 1, until: 100, now: 2)
      }
      #expect(throws: NonceStoreError.self) {
        try last.record("other", of: "a", created: 1, until: 100, now: 2)
      }
      #expect(try last.record("later", of: "a", created: 2, until: 101, now: 2))
      #expect(try !last.record("kept", of: "a", created: 900, until: 5000, now: 2))
    }
  }

  @Test("a nonce stays known after a restart, in a file that only the user may access")
  func restart() throws {
    let path = try path()
    do {
      let store = try SQLiteNonceStore(path)
      #expect(try store.record("n", of: "a", created: 1, until: 100, now: 1))
    }
    let store = try SQLiteNonceStore(path)
    #expect(try !store.record("n", of: "a", created: 1, until: 100, now: 2))
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o077 == 0)
  }

  @Test("of concurrent uses of a nonce, one is accepted")
  func concurrency() async throws {
    let path = try path()
    let stores = [try SQLiteNonceStore(path), try SQLiteNonceStore(path)]
    for round in 0..<20 {
      let wins = await withTaskGroup(of: Bool.self, returning: Int.self) { group in
        for index in 0..<6 {
          group.addTask {
            (try? stores[index % 2].record("n\(round)", of: "a", created: 1, until: 100, now: 1)) ?? false
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(wins == 1)
    }
  }

  @Test("a file that is not a nonce store is refused and not changed")
  func otherFile() throws {
    let path = try path()
    let text = String(repeating: "something that matters\n", count: 100)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    do {
      _ = try SQLiteNonceStore(path)
      Issue.record("it was opened")
    } catch { #expect(error.code == .unreadableFile) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(text.utf8))
  }

  /// A trigger may never end, so the store runs nothing that netopt did not create.
  @Test(
    "a store with other tables, triggers or columns is refused and not changed",
    arguments: [
      "CREATE TRIGGER endless AFTER INSERT ON nonces BEGIN DELETE FROM nonces; END", "CREATE TABLE more (a)",
      "ALTER TABLE nonces ADD COLUMN more",
    ])
  func foreignObjects(change: String) throws {
    let path = try path()
    do { _ = try SQLiteNonceStore(path) }
    let database = try Database(path)
    try database.execute(change)
    let before = try database.definitions()
    let error = #expect(throws: NetOptError.self) { try SQLiteNonceStore(path) }
    #expect(error?.code == .unreadableFile)
    #expect(error?.message.contains("it has other tables, indices or triggers than netopt makes") == true)
    #expect(try database.definitions() == before)
  }

  @Test("the verifier refuses a request when the nonce store fails")
  func failingStore() throws {
    struct Broken: NonceStore {
      func record(
        _: String, of _: String, created _: Int64, until _: Int64, now _: Int64
      ) throws(NonceStoreError) -> Bool {
        throw NonceStoreError("the disk is gone")
      }
    }
    let signed = try NetOpt1().sign(
      GoldenVectorTests.request, with: GoldenVectorTests.key, at: GoldenVectorTests.moment)
    var request = GoldenVectorTests.request
    for field in signed.headers { request.headers[field.name] = field.value }
    let verifier = SignatureVerifier(keys: KeyRing([GoldenVectorTests.key]), nonces: Broken())
    let report = verifier.verify(request, .init(now: 1_700_000_000))
    #expect(report.reason == .nonceStoreFailed && !report.isValid && report.assurance == .none)
  }

  @Test("the verifier refuses a replay, and a forged request does not use up the nonce")
  func replay() throws {
    let signed = try NetOpt1().sign(
      GoldenVectorTests.request, with: GoldenVectorTests.key, at: GoldenVectorTests.moment)
    var request = GoldenVectorTests.request
    for field in signed.headers { request.headers[field.name] = field.value }
    let store = try SQLiteNonceStore(try path())
    let verifier = SignatureVerifier(keys: KeyRing([GoldenVectorTests.key]), nonces: store)
    // A forged request must not use up the nonce.
    var forged = request
    forged.body = []
    #expect(verifier.verify(forged, .init(now: 1_700_000_000)).reason == .signatureMismatch)
    #expect(verifier.verify(request, .init(now: 1_700_000_000)).isValid)
    #expect(verifier.verify(request, .init(now: 1_700_000_000)).reason == .replayed)
    #expect(verifier.verify(request, .init(now: 1_700_000_300)).reason == .replayed)
    #expect(verifier.verify(request, .init(now: 1_700_000_301)).reason == .tooOld)
  }
}
