package import NetOptCore

/// Decides which list a client uses: the configured list or its last good copy. Also decides whether a
/// fetched list may replace the list in use.
package enum ListAcceptance {
  /// Whether the client uses the copy instead of the configured list. The copy is the newest list that a
  /// refresh has fetched for the configured list, in this process or an earlier one.
  ///
  /// True when the configured list names a refresh URL and the copy has a higher serial. At equal serials,
  /// the client uses the configured list. A configured list without a refresh URL is maintained by hand, so
  /// no copy replaces it.
  package static func prefersCopy(_ copy: EndpointList, to configured: EndpointList) -> Bool {
    configured.refresh != nil && copy.serial > configured.serial
  }

  /// Whether a fetched list is a later issue than the list in use.
  ///
  /// - Parameter source: where the fetched list came from, for the error message.
  /// - Returns: true when the fetched list has a higher serial; false when both lists are equal.
  /// - Throws: `invalidList` when the fetched list has a lower serial, or when it has the same serial and
  ///   other contents. Otherwise an attacker who replays an old list could lead requests to addresses that
  ///   belong to somebody else by now.
  package static func isNewer(
    _ fetched: EndpointList, than current: EndpointList, from source: String
  ) throws(NetOptError) -> Bool {
    if fetched.serial > current.serial { return true }
    if fetched == current { return false }
    guard fetched.serial == current.serial else {
      throw NetOptError(
        .invalidList, phase: .list,
        "\(source): $.serial: is \(fetched.serial), but the list in use has \(current.serial); netopt accepts no older list: issue it with a higher serial"
      )
    }
    throw NetOptError(
      .invalidList, phase: .list,
      "\(source): $.serial: is \(fetched.serial) as in the list in use, but the contents differ; issue the list with a higher serial"
    )
  }
}
