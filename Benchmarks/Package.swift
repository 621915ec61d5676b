// swift-tools-version: 6.2
import PackageDescription

/// Measurements of netopt. A package of its own, so that those who use netopt do not build it.
let package = Package(
  name: "netopt-benchmarks",
  dependencies: [.package(name: "netopt", path: "..")],
  targets: [
    .executableTarget(
      name: "netopt-benchmark",
      dependencies: [.product(name: "NetOpt", package: "netopt"), "CMalloc"],
      swiftSettings: [
        .swiftLanguageMode(.v6), .treatAllWarnings(as: .error),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
      ]),
    .systemLibrary(name: "CMalloc"),
    .executableTarget(name: "raw-libcurl", linkerSettings: [.linkedLibrary("curl")]),
    .executableTarget(
      name: "urlsession-requests", swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
  ]
)
