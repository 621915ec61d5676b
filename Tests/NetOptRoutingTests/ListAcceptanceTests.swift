import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct ListAcceptanceTests {
  /// A list with one endpoint. `refresh` says whether the list names a refresh URL.
  private func list(_ serial: Int64, refresh: Bool = true, _ address: String = "192.0.2.1") throws
    -> EndpointList
  {
    EndpointList(
      serial: serial, refresh: refresh ? .init(url: try HTTPURL("https://a.example/list")) : nil,
      hosts: ["a.example": HostEntry(endpoints: [ListedEndpoint(ip(address))])])
  }

  @Test("a copy with a higher serial replaces a list that has a refresh URL")
  func preferredCopy() throws {
    #expect(ListAcceptance.prefersCopy(try list(8), to: try list(7)))
    #expect(ListAcceptance.prefersCopy(try list(8, refresh: false), to: try list(7)))
    #expect(!ListAcceptance.prefersCopy(try list(7, "192.0.2.2"), to: try list(7)))
    #expect(!ListAcceptance.prefersCopy(try list(6), to: try list(7)))
    // Operators edit a list without a refresh URL by hand.
    #expect(!ListAcceptance.prefersCopy(try list(8), to: try list(7, refresh: false)))
  }

  @Test("a list with a lower serial, or with other content and the same serial, is refused")
  func olderList() throws {
    let current = try list(7)
    #expect(try ListAcceptance.isNewer(try list(8), than: current, from: "u"))
    #expect(try !ListAcceptance.isNewer(current, than: current, from: "u"))
    let old = #expect(throws: NetOptError.self) {
      try ListAcceptance.isNewer(try list(6), than: current, from: "u")
    }
    #expect(old?.code == .invalidList)
    #expect(old?.message.hasPrefix("u: $.serial: is 6, but the list in use has 7") == true)
    let other = #expect(throws: NetOptError.self) {
      try ListAcceptance.isNewer(try list(7, "192.0.2.2"), than: current, from: "u")
    }
    #expect(other?.message.hasPrefix("u: $.serial: is 7 as in the list in use") == true)
  }
}
