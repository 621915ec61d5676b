import FoundationEssentials
import NetOptTestSupport
import Testing

@testable import NetOpt

/// The end of a list is told to those who watch it.
extension ListUpdateTests {
  private func watched(by recorder: ListRecorder) -> ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.probing.atStart = false
    configuration.rankingHistory = .none
    configuration.listObservers = [recorder]
    configuration.list = .file("\(directory)/list.json")
    configuration.allowPrivateAddresses = true
    return configuration
  }

  @Test func whoWatchesTheListIsToldOnceWhenItExpires() async throws {
    let recorder = ListRecorder()
    let soon = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.up) + 3)
    try replaceFile("\(directory)/list.json", listBytes(serial: 1, expires: soon.formatted(.iso8601)))
    let client = try NetOptClient(watched(by: recorder))
    #expect(client.listWarning == nil)
    #expect(recorder.events.events.isEmpty)
    let events = try await recorder.events.wait(for: "the end") { !$0.isEmpty }
    #expect(Date() >= soon)
    guard case .expired(let error, let status) = events[0] else {
      Issue.record("\(events)")
      return
    }
    #expect(error.message.hasPrefix("the IP list has expired") && status.serial == 1)
    #expect(client.listWarning?.message == error.message)
    // The next one has an end of its own, which is told of as well; that of the first is not told again.
    let later = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.up) + 3)
    try replaceFile("\(directory)/list.json", listBytes(serial: 2, expires: later.formatted(.iso8601)))
    let all = try await recorder.events.wait(for: "the other end") { $0.count { $0.isExpiry } == 2 }
    #expect(all.map(\.status.serial) == [1, 2, 2])
    #expect(all.map(\.isChange) == [false, true, false])
    await client.shutdown()
    #expect(recorder.events.events.count == 3)
  }

  /// It is used all the same at the start, since a list that was good yesterday is better than none.
  @Test func ofAListThatHasExpiredBeforeTheStartTheyAreToldOnceToo() async throws {
    let recorder = ListRecorder()
    try replaceFile("\(directory)/list.json", listBytes(serial: 1, expires: "2026-01-01T00:00:00Z"))
    let client = try NetOptClient(watched(by: recorder))
    #expect(client.listWarning?.message.contains("has expired") == true)
    let events = try await recorder.events.wait(for: "the end") { !$0.isEmpty }
    #expect(events.count == 1 && events[0].isExpiry && events[0].status.serial == 1)
    try replaceFile("\(directory)/list.json", listBytes(serial: 2))
    let all = try await recorder.events.wait(for: "the next list") { $0.contains(where: \.isChange) }
    #expect(all.count { $0.isExpiry } == 1)
    await client.shutdown()
  }
}
