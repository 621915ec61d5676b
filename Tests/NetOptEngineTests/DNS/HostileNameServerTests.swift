import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Name servers whose answers are designed to cost time and memory.
@Suite(.timeLimit(.minutes(1))) struct HostileNameServerTests {
  // The address in a valid answer, and the address in an answer that the resolver must drop.
  private let good = IPAddress(v4: 0x7f00_0002)
  private let bad = IPAddress(v4: 0x7f00_0003)

  /// The answer has 22 KB. c-ares 1.18 alone would expand the owner of each of its 400 aliases to 1 MB, and
  /// keep the results, which take 413 MB (docs/adr/0031).
  ///
  /// The server sends this answer to the queries of both families (A and AAAA). If the answer to one family
  /// had no address and came last, c-ares would report that the name has no address, instead of the failure.
  @Test("an answer whose names expand to 413 MB fails the look-up and takes less than 50 MB")
  func refusesExpandingNames() async throws {
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

  @Test("the resolver drops an answer with a long name, and uses the answer after it")
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

  @Test("the resolver keeps the first 128 of thousands of addresses, in the order of a race")
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
        // This host always reaches the IPv4 addresses, which are loopback addresses. Only in some networks it
        // reaches the IPv6 addresses too, which are in fd00::/8. The families then alternate, and the
        // resolver keeps 64 addresses of each.
        #expect(kept.count == 128 || kept.count == 64)
      }
    }
    server.stop()
  }
}

/// Makes the answers of hostile name servers. `query` is the DNS message to answer.
private enum HostileAnswer {
  /// Returns an answer with an address and many aliases (CNAME records).
  ///
  /// The owner of each alias is a name with 258 KB of labels: it leads through 16 pointers, and 16 KB of
  /// labels follow each pointer. Nearly all octets of the labels are 0x1f. c-ares 1.18 writes such an octet
  /// as `\031`, so the text of the name has 1 MB.
  ///
  /// - Parameter count: the number of aliases.
  static func aliases(_ count: Int, to query: [UInt8]) -> [UInt8] {
    var writer = DNSMessageWriter(answering: query)
    // The data of a record of a type that no parser reads: labels of 31 octets, and then 15 pointers. A label
    // and its length octet are 32 octets 0x1f, so a walk through the labels may begin at any of these octets.
    // The first walk begins at `base` and ends at the first pointer. This pointer leads to the octet
    // `base + 2`, where the second walk begins. Therefore the second walk ends two octets later than the
    // first one, at the second pointer. The last walk ends at a zero octet, which is the root.
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

  /// Returns an answer with an address and an alias whose owner has 301 octets. The answer fits into 512
  /// octets.
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

  /// Returns an answer with those of the addresses whose family the query asks for.
  static func addresses(_ addresses: [IPAddress], to query: [UInt8]) -> [UInt8] {
    var writer = DNSMessageWriter(answering: query)
    let family: IPAddress.Family = DNSMessageWriter.asksForIPv4(query) ? .v4 : .v6
    addAddresses(addresses.filter { $0.family == family }, to: &writer)
    return writer.bytes
  }

  /// Adds a record of the type A or AAAA for each address. Its owner is the name in the question.
  private static func addAddresses(_ addresses: [IPAddress], to writer: inout DNSMessageWriter) {
    for address in addresses {
      writer.record(
        .answer, type: address.family == .v4 ? 1 : 28, owner: { $0.pointer(to: 12) },
        data: { $0.raw(address.bytes) })
    }
  }
}

/// The peak memory of this process in KiB (VmHWM in proc(5)).
private func mostMemory() -> Int {
  let line = TextFile.read("/proc/self/status").split(separator: "\n").first { $0.hasPrefix("VmHWM") }
  return line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
}
