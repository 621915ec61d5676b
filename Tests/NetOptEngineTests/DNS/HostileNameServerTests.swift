import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Name servers whose answers are made to cost time and memory.
@Suite(.timeLimit(.minutes(1))) struct HostileNameServerTests {
  private let good = IPAddress(v4: 0x7f00_0002)
  private let bad = IPAddress(v4: 0x7f00_0003)

  /// c-ares 1.18 expands the owner of each of these aliases to 384 KB, and keeps it: 150 MB from 22 KB. Both families get the answer:
  /// had one of them no address, c-ares would say so in place of the failure when that answer came last.
  @Test("an answer whose names expand to megabytes fails the look-up, in little memory")
  func refusesNamesWithoutEnd() async throws {
    await #expect(processExitsWith: .success) {
      let server = try FakeNameServer(.stream { HostileAnswer.aliases(400, to: $0) })
      try await withResolver(asking: [server.endpoint]) { resolver in
        let before = mostMemory()
        let error = await #expect(throws: NetOptError.self) { try await resolver.resolve("api.test") }
        #expect(error?.code == .resolverFailed)
        #expect(mostMemory() - before < 50_000)
      }
      server.stop()
    }
  }

  @Test("an answer with a long name is as one that was lost, and the one behind it counts")
  func dropsDatagrams() async throws {
    let server = try FakeNameServer(
      .datagrams { [good, bad] query in
        let answer = HostileAnswer.addresses([good], to: query)
        return DNSMessageWriter.asksForIPv4(query)
          ? [HostileAnswer.longName(to: query, address: bad), answer] : [answer]
      })
    try await withResolver(asking: [server.endpoint]) { resolver in
      try await #expect(resolver.resolve("api.test").addresses == [good])
    }
    server.stop()
  }

  @Test("of thousands of addresses of both families the first 128 in the order of trying are kept")
  func keepsSomeAddresses() async throws {
    let v4 = (0..<4_000).map { IPAddress(v4: 0x7f00_0001 + $0) }
    let v6 = (0..<2_300).map {
      IPAddress(v6: [0xfd] + [UInt8](repeating: 0, count: 13) + [UInt8($0 >> 8), UInt8($0 & 0xff)])
    }
    let server = try FakeNameServer(
      .stream { query in
        HostileAnswer.addresses(DNSMessageWriter.asksForIPv4(query) ? v4 : v6, to: query)
      })
    try await withResolver(asking: [server.endpoint]) { resolver in
      for _ in 0..<2 {
        let addresses = try await resolver.resolve("many.test").addresses
        #expect(addresses.count == 128)
        let kept = addresses.filter { $0.family == .v4 }
        #expect(kept == Array(v4.prefix(kept.count)))
        #expect(addresses.filter { $0.family == .v6 } == Array(v6.prefix(max(0, 128 - kept.count))))
        // This host reaches the addresses of loopback; whether those of fd00::/8, depends.
        #expect(kept.count == 128 || kept.count == 64)
      }
    }
    server.stop()
  }
}

/// Answers to questions.
private enum HostileAnswer {
  /// An address, and many aliases whose owner is a name of 384 KB: 24 pointers, each behind 16 KB of labels.
  static func aliases(_ count: Int, to query: [UInt8]) -> [UInt8] {
    var writer = DNSMessageWriter(answering: query)
    // The data of a record of a type that nobody reads. Each walk begins two octets behind the last one, and leads to the pointer to
    // the next one's beginning.
    let base = writer.bytes.count + 11
    writer.record(.answer, type: 99, owner: { $0.name([]) }) { writer in
      writer.raw([UInt8](repeating: 0x1f, count: (16_200 - base) / 32 * 32))
      for index in 1..<16 { writer.pointer(to: base + 2 * index) }
      writer.raw([0, 0])
    }
    for _ in 0..<count {
      writer.record(.answer, type: 5, owner: { $0.pointer(to: base) }, data: { $0.pointer(to: 12) })
    }
    addAddresses([IPAddress(v4: 0x7f00_0003)], to: &writer)
    return writer.bytes
  }

  /// An address, and an alias whose owner has 300 octets. It fits into a datagram of 512 octets.
  static func longName(to query: [UInt8], address: IPAddress) -> [UInt8] {
    var writer = DNSMessageWriter(answering: query)
    addAddresses([address], to: &writer)
    writer.record(
      .answer, type: 5,
      owner: {
        $0.name([[UInt8]](repeating: [UInt8](repeating: 0x61, count: 59), count: 5), compressed: false)
      },
      data: { $0.pointer(to: 12) })
    return writer.bytes
  }

  static func addresses(_ addresses: [IPAddress], to query: [UInt8]) -> [UInt8] {
    var writer = DNSMessageWriter(answering: query)
    let family: IPAddress.Family = DNSMessageWriter.asksForIPv4(query) ? .v4 : .v6
    addAddresses(addresses.filter { $0.family == family }, to: &writer)
    return writer.bytes
  }

  private static func addAddresses(_ addresses: [IPAddress], to writer: inout DNSMessageWriter) {
    for address in addresses {
      writer.record(
        .answer, type: address.family == .v4 ? 1 : 28, owner: { $0.pointer(to: 12) },
        data: { $0.raw(address.bytes) })
    }
  }
}

/// The most memory that this process has had, in KiB (VmHWM in proc(5)).
private func mostMemory() -> Int {
  let line = TextFile.read("/proc/self/status").split(separator: "\n").first { $0.hasPrefix("VmHWM") }
  return line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
}
