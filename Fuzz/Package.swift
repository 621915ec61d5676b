// swift-tools-version: 6.2
import PackageDescription

/// Fuzzing with libFuzzer: `make fuzz`. A separate package, because it links only with libFuzzer, which the
/// Makefile names.
let package = Package(
  name: "netopt-fuzz",
  dependencies: [.package(name: "netopt", path: "..")],
  targets: [
    .executableTarget(
      name: "netopt-fuzz",
      dependencies: [.product(name: "NetOptFuzzing", package: "netopt"), "CFuzzer"],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)],
      linkerSettings: [.linkedLibrary("stdc++")]),
    .systemLibrary(name: "CFuzzer"),
  ]
)
