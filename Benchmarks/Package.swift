// swift-tools-version: 6.2
import PackageDescription

/// What netopt is compared with. A package of its own, so that those who use netopt do not build it; the programs that measure netopt
/// itself are targets of its package, since they use declarations that are not public.
let package = Package(
  name: "netopt-benchmarks",
  targets: [
    .executableTarget(name: "raw-libcurl", linkerSettings: [.linkedLibrary("curl")]),
    .executableTarget(
      name: "urlsession-requests", swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
  ]
)
