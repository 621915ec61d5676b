import FoundationEssentials
import Glibc
import NetOptCaching
import NetOptCore
import NetOptCrypto
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that no number in a file makes the client that reads the file trap or hang. The tests run in child
/// processes, because a trap ends the process.
@Suite struct ExtremeFilesTests {
  /// Does what a process does with the record of refreshes that an earlier process saved: reads the record,
  /// continues the schedule from it, and saves the record after each event.
  @Test("a refresh record with extreme numbers is read, used and written again")
  func extremeRecords() async throws {
    // The child writes each text into the note before it tries the text. When the child traps, the last
    // expectation of the test fails and shows the note.
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // SIGALRM ends the child after 300 s, so a child that hangs makes the test fail.
      alarm(300)
      let note = LastNote(path)
      let directory = try TemporaryDirectory.make("records")
      let reader = ListReader(trustedKeys: [], allowPrivateAddresses: false)
      let store = ListStore(directory: directory, for: reader)
      let url = try HTTPURL("https://api.test/list.json")
      // The store chooses the name of the file. So the test saves a record and looks for the file.
      try store.keep(RefreshSchedule.Record(failures: 1), of: url)
      let names = try FileManager.default.contentsOfDirectory(atPath: directory)
      let file = "\(directory)/\(try #require(names.first { $0.hasSuffix(".record") }))"
      let usual =
        "netopt-record 1\nfailures: 1\nchecked: 1700000000\nattempted: 1700000000\nnot-before: 1700000000\n\n"
      let text = ExtremeText(Array(usual.utf8))
      var random = SplitMix64(seed: 1)
      // First each text with one extreme number, then 300 texts with several.
      for index in 0..<(text.count + 300) {
        let bytes = index < text.count ? text[index] : text.drawn(using: &random)
        note.write(String(decoding: bytes, as: UTF8.self))
        try replaceFile(file, bytes)
        let now = random.element(of: ExtremeNumbers.moments)
        let every = random.element(of: ExtremeNumbers.durations)
        var schedule = RefreshSchedule(
          every: every, record: store.record(of: url), now: now, wall: Date(), seed: random.next())
        schedule.began(wall: Date())
        try store.keep(schedule.record, of: url)
        schedule.failed(at: now, wall: Date(), retryAfter: random.element(of: ExtremeNumbers.durations))
        try store.keep(schedule.record, of: url)
        #expect(store.record(of: url).failures >= 1)
        schedule.follow(every: random.element(of: ExtremeNumbers.durations), at: now)
        schedule.succeeded(at: now, wall: Date())
        try store.keep(schedule.record, of: url)
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("a seed pack whose index has extreme numbers is refused or used")
  func extremeSeedPacks() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let directory = try TemporaryDirectory.make("seeds")
      try replaceFile("\(directory)/app.js", Array("shipped".utf8))
      let digest = Hex.text(try Digest.of("shipped", .sha256))
      // The digest takes the place of `DIGEST` only after the numbers have been replaced. Otherwise
      // `ExtremeText` would also replace the digits in the digest.
      let text = ExtremeText(
        Array(
          #"{"schema":1,"issued":1795219000,"resources":[{"key":"app","version":5,"status":200,"file":"app.js","sha256":"DIGEST","fields":[["Age","5"]]}]}"#
            .utf8))
      var versions = CacheOptions.Versions()
      versions.name = "app"
      for index in 0..<text.count {
        let index = String(decoding: text[index], as: UTF8.self).replacing("DIGEST", with: digest)
        note.write(index)
        try replaceFile("\(directory)/index.json", Array(index.utf8))
        do {
          let lab = try CacheLab({ $0.seedPacks = [directory] }) { (request, _) throws(NetOptError) in
            CacheLab.response(request, 200, [:], "fetched")
          }
          for version in ["5", "-9223372036854775808", "9223372036854775807"] {
            _ = try await lab.ask(.get, "/app.js?cachevers=\(version)") {
              $0.options.cache = CacheOptions(.versioned(versions))
            }
          }
          await lab.client.shutdown()
        } catch let error as NetOptError {
          #expect(error.code == .unreadableFile && error.message.contains("index.json"), "\(error)")
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
