import CAres

/// The c-ares that the program runs with.
package enum AresVersion {
  /// Its version, as `1.18.1`.
  package static var string: String { String(cString: ares_version(nil)) }
}

/// c-ares as a whole (ares_library_init(3)).
enum AresLibrary {
  /// What setting it up came to. It is set up once, when this is first read, and stays: other users of c-ares in the
  /// process may rely on it.
  static let status: Int32 = ares_library_init(ARES_LIB_INIT_ALL)
}
