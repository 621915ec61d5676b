import Glibc
import NetOptCore
@testable import NetOptEngine
import Testing

/// The ready connections of a group. The numbers 7, 8 and 9 are the descriptors of their sockets.
@Suite struct ConnectionGroupTests {
  private let a = IPEndpoint(IPAddress(v4: 0x7f00_0001), port: 443)
  private let b = IPEndpoint(IPAddress(v4: 0x7f00_0002), port: 443)
  private let group = ConnectionGroup(
    ConnectionKey(Origin(.https, host: "api.test"), RequestOptions(), .plain),
    OriginBundles(of: Origin(.https, host: "api.test"), .plain))

  @Test("a group and an endpoint are ready while they have a ready connection")
  func readiness() {
    #expect(!group.isReady)
    #expect(group.readyDNSEndpoint() == nil)
    group.becameReady(7, to: b, from: .dns)
    #expect(group.isReady)
    #expect(group.isReady(b))
    #expect(!group.isReady(a))
    group.closed(7)
    #expect(!group.isReady)
  }

  @Test("readyDNSEndpoint prefers the endpoint with more connections, then the lower address")
  func preference() {
    group.becameReady(7, to: b, from: .dns)
    group.becameReady(8, to: a, from: .dns)
    #expect(group.readyDNSEndpoint() == a)
    group.becameReady(9, to: b, from: .dns)
    #expect(group.readyDNSEndpoint() == b)
  }

  @Test("readyDNSEndpoint ignores endpoints of the list and addresses that the plan avoids")
  func answersOfDNS() {
    group.becameReady(7, to: a, from: .list)
    group.becameReady(8, to: a, from: .list)
    #expect(group.isReady(a))
    #expect(group.readyDNSEndpoint() == nil)
    group.becameReady(9, to: b, from: .dns)
    #expect(group.readyDNSEndpoint() == b)
    #expect(group.readyDNSEndpoint(avoiding: .init([b.address])) == nil)
  }

  @Test("onlySocket returns the socket of an endpoint that has exactly one connection")
  func onlySocket() {
    #expect(group.onlySocket(to: a) == nil)
    group.becameReady(7, to: a, from: .dns)
    group.becameReady(8, to: b, from: .dns)
    #expect(group.onlySocket(to: a) == 7)
    group.becameReady(9, to: a, from: .dns)
    #expect(group.onlySocket(to: a) == nil)
  }
}

@Suite struct ConnectionTableTests {
  @Test func findsAGroupByItsKey() throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    var table = ConnectionTable(try ClientTLS(CurlConfiguration(), loop: loop), TransportCounter())
    let one = ConnectionKey(Origin(.https, host: "one.test"), RequestOptions(), .plain)
    let two = ConnectionKey(Origin(.https, host: "two.test"), RequestOptions(), .plain)
    let first = table.group(one, .plain)
    let second = table.group(two, .plain)
    let again = table.group(one, .plain)
    #expect(second !== first)
    #expect(again === first)
  }

  @Test("the table drops unused groups when it has 1,024 groups, and keeps groups in use")
  func unusedGroups() throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    var table = ConnectionTable(try ClientTLS(CurlConfiguration(), loop: loop), TransportCounter())
    func key(_ number: Int) -> ConnectionKey {
      ConnectionKey(Origin(.https, host: "host\(number).test"), RequestOptions(), .plain)
    }
    let used = table.group(key(0), .plain)
    used.users = 1
    let unused = table.group(key(1), .plain)
    for number in 2..<1100 { _ = table.group(key(number), .plain) }
    let usedAgain = table.group(key(0), .plain)
    let unusedAgain = table.group(key(1), .plain)
    #expect(usedAgain === used)
    #expect(unusedAgain !== unused)
  }

  @Test("after 3,000 groups in use at once, the table drops unused groups when it has twice as many")
  func unusedGroupsAfterAPeak() throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    var table = ConnectionTable(try ClientTLS(CurlConfiguration(), loop: loop), TransportCounter())
    func group(_ number: Int) -> ConnectionGroup {
      table.group(
        ConnectionKey(Origin(.https, host: "host\(number).test"), RequestOptions(), .plain), .plain)
    }
    let peak = (0..<3000).map { number in
      let group = group(number)
      group.users = 1
      return group
    }
    for number in 3000..<9000 { _ = group(number) }
    let kept = (0..<3000).count { group($0) === peak[$0] }
    #expect(kept == 3000)
    for used in peak { used.users = 0 }
    for number in 9000..<15_000 { _ = group(number) }
    let left = (0..<3000).count { group($0) === peak[$0] }
    #expect(left == 0)
  }

  @Test("the table adds 20,000 groups in use in less than 10 s of processor time")
  func manyGroupsInUse() throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    var table = ConnectionTable(try ClientTLS(CurlConfiguration(), loop: loop), TransportCounter())
    let began = processorTime()
    for number in 0..<20_000 {
      let key = ConnectionKey(Origin(.https, host: "host\(number).test"), RequestOptions(), .plain)
      table.group(key, .plain).users = 1
    }
    // With a search for unused groups before each new group, this loop took two minutes.
    #expect(processorTime() - began < .seconds(10))
  }

  /// The processor time that this thread has used. Another process cannot add to it, as it can to the time
  /// on the clock.
  private func processorTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// `setInterest` takes the events of which libcurl wants to be told, and returns what the loop must do.
  /// `isWanted` says whether to tell libcurl of an event. It is false only for connections that are known and
  /// idle.
  @Test("for an unknown socket, the loop does what libcurl asks, and tells libcurl of every event")
  func unknownSocket() throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    var table = ConnectionTable(try ClientTLS(CurlConfiguration(), loop: loop), TransportCounter())
    let answers = [table.setInterest(5, .read), table.setInterest(5, .read), table.setInterest(5, [])]
    #expect(answers == [.watch(.read), .watch(.read), .unwatch])
    let isWanted = table.isWanted(5)
    #expect(isWanted)
  }
}
