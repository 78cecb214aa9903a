internal import ArgumentParser

/// Of `--log-format`.
enum LogFormat: String, ExpressibleByArgument, CaseIterable, Sendable { case text, json }

/// Of `--progress`.
enum ProgressMode: String, ExpressibleByArgument, CaseIterable, Sendable { case auto, always, never }
