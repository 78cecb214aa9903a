// swift-tools-version:6.2
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

// libFuzzer comes with the compiler's -sanitize=fuzzer, and nothing that wants it links without (`make fuzz`).
let fuzzing: [Target] =
  Context.environment["SPOOLRUN_FUZZ"] == nil
  ? []
  : [
    .systemLibrary(name: "CLibFuzzer", path: "Tests/CLibFuzzer"),
    .executableTarget(
      name: "FuzzRig", dependencies: ["CLibFuzzer", "FuzzProperties"], path: "Tests/FuzzRig", exclude: ["dictionary"],
      swiftSettings: swiftSettings),
  ]

let package = Package(
  name: "spoolrun",
  products: [.executable(name: "spoolrun", targets: ["spoolrun"])],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
  ],
  targets: [
    // C headers that Swift cannot call as they are: variadic functions, macros, calls that Glibc's module leaves out.
    .target(name: "CCurl"),
    .target(name: "CLinux"),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    .target(
      name: "Spool",
      dependencies: ["CLinux", "CZlib", .product(name: "SystemPackage", package: "swift-system")],
      swiftSettings: swiftSettings),
    .target(name: "Transfer", dependencies: ["CCurl"], swiftSettings: swiftSettings),
    .target(
      name: "SpoolWorker",
      dependencies: [
        "CLinux", "Spool", "Transfer", .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: swiftSettings),
    .target(
      name: "SpoolStatus",
      dependencies: ["Spool", "SpoolWorker", .product(name: "SystemPackage", package: "swift-system")],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "spoolrun",
      dependencies: [
        "CLinux", "Spool", "SpoolStatus", "SpoolWorker", "Transfer",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: swiftSettings),

    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: swiftSettings),
    .executableTarget(
      name: "FaultRig",
      dependencies: [
        "CLinux", "Spool", "SpoolWorker", "Transfer",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Tests/FaultRig", swiftSettings: swiftSettings),
    .executableTarget(
      name: "LyingServer", dependencies: ["TestSupport"], path: "Tests/LyingServer", swiftSettings: swiftSettings),
    .target(
      name: "FuzzProperties", dependencies: ["Spool", "SpoolWorker", "Transfer"], path: "Tests/FuzzProperties",
      swiftSettings: swiftSettings),
    .testTarget(
      name: "SpoolTests",
      dependencies: [
        "Spool", "TestSupport", .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "StatusTests", dependencies: ["Spool", "SpoolStatus", "SpoolWorker", "TestSupport", "spoolrun"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "TransferTests", dependencies: ["Transfer", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "WorkerTests",
      dependencies: ["FaultRig", "Spool", "SpoolWorker", "Transfer", "TestSupport", "spoolrun"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "LyingServerTests", dependencies: ["LyingServer", "TestSupport", "spoolrun"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CrashMatrixTests", dependencies: ["TestSupport", "FaultRig"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CommandTests",
      dependencies: ["Spool", "TestSupport", "spoolrun"],
      swiftSettings: swiftSettings),
    .testTarget(name: "DropTests", dependencies: ["TestSupport", "spoolrun"], swiftSettings: swiftSettings),
    .testTarget(name: "TriggerTests", dependencies: ["TestSupport", "spoolrun"], swiftSettings: swiftSettings),
    .testTarget(
      name: "DocumentationTests", dependencies: ["Spool", "TestSupport", "spoolrun"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "CorpusTests", dependencies: ["FuzzProperties", "TestSupport"], swiftSettings: swiftSettings),
  ] + fuzzing,
  swiftLanguageModes: [.v6])
