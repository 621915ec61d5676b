import NetOptCore
import Testing

@Suite struct IPAddressTests {
  /// The text of an address, and its canonical form by RFC 5952.
  @Test(
    "parses an address and prints it as RFC 5952 says",
    arguments: [
      ("192.0.2.1", "192.0.2.1"),
      ("0.0.0.0", "0.0.0.0"),
      ("255.255.255.255", "255.255.255.255"),
      ("::", "::"),
      ("::1", "::1"),
      ("2001:DB8::7", "2001:db8::7"),
      ("2001:0db8:0000:0000:0000:0000:0000:0007", "2001:db8::7"),
      // Section 4.2.2: a single group of zeros is not shortened.
      ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
      // Section 4.2.3: the longest run of zeros is shortened, and the first of two equally long runs.
      ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
      ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
      ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
      ("fe80::", "fe80::"),
      // Section 5: IPv4-mapped.
      ("::ffff:c000:0201", "::ffff:192.0.2.1"),
      ("::FFFF:192.0.2.1", "::ffff:192.0.2.1"),
      ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
    ])
  func readsAndPrints(_ text: String, _ printed: String) throws {
    let address = try #require(IPAddress(text))
    #expect(address.description == printed)
    #expect(IPAddress(printed) == address)
  }

  @Test(
    "parsing refuses texts that are not exactly one address",
    arguments: [
      "", " ", "1", "127.1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "0x7f.0.0.1", "1.2.3.4 ",
      " 1.2.3.4",
      "1.2.3.-4", "1.2.3.4\0", "1.2.3.4\0.evil", "١.٢.٣.٤", "[::1]", "::1%lo", "fe80::1%1", ":::", "1::2::3",
      ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "g::", "12345::", "::1.2.3", "::ffff:1.2.3.256",
      "::1/128",
      String(repeating: "0", count: 100), "example.com",
    ])
  func refuses(_ text: String) { #expect(IPAddress(text) == nil) }

  @Test("parses a substring")
  func substring() {
    #expect(IPAddress("[::1]".dropFirst().dropLast()) == IPAddress("::1"))
  }

  @Test("an address from a number or 16 bytes equals the parsed one")
  func fromBits() {
    #expect(IPAddress(v4: 0x7f00_0001) == IPAddress("127.0.0.1"))
    #expect(IPAddress(v6: (0..<16).map { UInt8($0) }).description == "1:203:405:607:809:a0b:c0d:e0f")
  }

  @Test("the bytes of an address are in network order")
  func byteOrder() throws {
    #expect(IPAddress(v4: 0x0102_03ff).bytes == [1, 2, 3, 255])
    let bytes: [UInt8] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]
    #expect(try #require(IPAddress("2001:db8::7")).bytes == bytes)
    #expect(IPAddress(v6: bytes) == IPAddress("2001:db8::7"))
  }

  @Test("every printed address parses to the same address")
  func printedAddresses() {
    var random = SplitMix64(seed: 1)
    for _ in 0..<2000 {
      let v4 = IPAddress(v4: .random(in: 0...(.max), using: &random))
      #expect(IPAddress(v4.description) == v4)
      // Many bytes are zero, because printing shortens runs of zeros.
      let v6 = IPAddress(
        v6: (0..<16).map { _ in random.chance(60) ? 0 : UInt8.random(in: 0...255, using: &random) })
      #expect(IPAddress(v6.description) == v6)
    }
  }

  @Test(
    "an address has the scope of its block, or of the IPv4 address inside it",
    arguments: [
      ("0.0.0.0", IPAddress.Scope.unspecified), ("0.255.255.255", .unspecified), ("1.0.0.0", .global),
      ("9.255.255.255", .global), ("10.0.0.0", .private), ("10.255.255.255", .private), ("11.0.0.0", .global),
      ("100.63.255.255", .global), ("100.64.0.0", .private), ("100.127.255.255", .private),
      ("100.128.0.0", .global),
      ("126.255.255.255", .global), ("127.0.0.0", .loopback), ("127.255.255.255", .loopback),
      ("128.0.0.0", .global),
      ("169.253.255.255", .global), ("169.254.0.0", .linkLocal), ("169.254.255.255", .linkLocal),
      ("169.255.0.0", .global), ("172.15.255.255", .global), ("172.16.0.0", .private),
      ("172.31.255.255", .private),
      ("172.32.0.0", .global), ("192.167.255.255", .global), ("192.168.0.0", .private),
      ("192.168.255.255", .private),
      ("192.169.0.0", .global), ("203.0.113.7", .global), ("223.255.255.255", .global),
      ("224.0.0.0", .multicast),
      ("239.255.255.255", .multicast), ("240.0.0.0", .reserved), ("255.255.255.255", .reserved),
      ("::", .unspecified), ("::1", .loopback), ("::2", .unspecified), ("2001:db8::7", .global),
      ("fbff::", .reserved),
      ("fc00::", .private), ("fdff::1", .private), ("fe00::", .reserved), ("fe80::1", .linkLocal),
      ("febf::1", .linkLocal),
      ("fec0::", .private), ("feff::1", .private), ("ff00::", .multicast), ("ff02::1", .multicast),
      ("::ffff:127.0.0.1", .loopback), ("::ffff:10.1.1.1", .private), ("::ffff:8.8.8.8", .global),
      ("::ffff:0.0.0.0", .unspecified), ("::ffff:169.254.1.1", .linkLocal), ("::ffff:224.0.0.1", .multicast),
      ("191.255.255.255", .global), ("192.0.0.0", .reserved), ("192.0.0.255", .reserved),
      ("192.0.1.0", .global),
      ("198.17.255.255", .global), ("198.18.0.0", .reserved), ("198.19.255.255", .reserved),
      ("198.20.0.0", .global), ("::10.0.0.1", .private), ("::8.8.8.8", .global),
      ("::ffff:0:192.168.0.1", .private), ("64:ff9b::127.0.0.1", .loopback), ("64:ff9b::8.8.8.8", .global),
      ("64:ff9b:0:0:0:1:a00:1", .reserved), ("64:ff9b:1::8.8.8.8", .private), ("64:ff9b:2::a00:1", .reserved),
      ("2002:a00:1::1", .private), ("2002:7f00:1::", .loopback), ("2002:808:808::1", .global),
      ("2001::1", .reserved), ("2001:1ff:ffff::", .reserved), ("2001:200::", .global), ("100::1", .reserved),
      ("100:0:0:1::1", .reserved), ("100:0:0:2::1", .reserved), ("5f00::1", .reserved),
      ("2001:db8::5efe:10.0.0.1", .private), ("2001:db8::200:5efe:10.0.0.1", .private),
      ("2001:db8::5efe:8.8.8.8", .global), ("2002:808:808::5efe:a00:1", .private), ("200:1234::1", .reserved),
      ("4000::1", .reserved), ("3fff::1", .global), ("192.88.99.1", .reserved), ("192.88.98.1", .global),
    ])
  func hasScope(_ text: String, _ scope: IPAddress.Scope) throws {
    #expect(try #require(IPAddress(text)).scope == scope)
  }

  @Test
  func orderIsTotal() {
    let sorted = [
      "0.0.0.0", "0.0.0.1", "127.0.0.1", "255.255.255.255", "::", "::1", "::ffff:0.0.0.1", "1::", "ff::1",
    ]
    .compactMap { IPAddress($0) }
    #expect(sorted.count == 9)
    for (i, a) in sorted.enumerated() {
      for (j, b) in sorted.enumerated() {
        #expect((a < b) == (i < j))
        #expect((a == b) == (i == j))
      }
    }
  }

  @Test("an IPv4 address never equals an IPv6 address, and a mapped address is IPv6")
  func families() {
    #expect(IPAddress("0.0.0.1") != IPAddress("::1"))
    #expect(IPAddress("1.2.3.4") != IPAddress("::ffff:1.2.3.4"))
    #expect(IPAddress("::ffff:1.2.3.4")?.family == .v6)
  }

  @Test(
    "an endpoint prints an IPv6 address in brackets",
    arguments: [("192.0.2.1", "192.0.2.1:443"), ("2001:db8::1", "[2001:db8::1]:443")])
  func brackets(_ text: String, _ printed: String) throws {
    let address = try #require(IPAddress(text))
    #expect(IPEndpoint(address, port: 443).description == printed)
    #expect(printed.hasPrefix(address.hostText + ":"))
  }
}
