import NetOptEngine

/// The versions of netopt and of the libraries that it loaded.
public enum NetOptVersion {
  /// netopt's version (semver.org).
  public static let string = "0.1.0"

  /// The libraries in use, with their versions at run time: libcurl, its TLS library, nghttp2, c-ares.
  public static var libraries: [(name: String, version: String)] {
    CurlLibrary.versions + [("c-ares", AresVersion.string)]
  }
}
