/// Why a job does not run now.
package struct JobWait: Sendable, Equatable {
  /// The raw value is that of the JSON.
  package enum Cause: String, CaseIterable, Sendable {
    /// A person has paused it.
    case held
    /// It waits for the time of its next attempt.
    case time
    /// No worker of the spool is alive.
    case worker
    /// What the workers wait for themselves: see ``WorkerReport/Wait``.
    case gate, space, output, proxy, network
    /// Somebody may still write it.
    case unfinished
    /// Another job has its output.
    case order
    /// Its server has as many transfers as `--per-host` allows.
    case host
    /// All slots are taken (`--jobs`).
    case slots
    /// It is of low priority, and leaves a slot free.
    case priority
    /// Its worker says what this version does not know.
    case other
  }

  /// What it waits for.
  package let cause: Cause
  /// For a person.
  package let reason: String

  /// - Parameter reason: without control characters.
  package init(_ cause: Cause, _ reason: String) { (self.cause, self.reason) = (cause, reason) }
}

extension JobWait {
  var json: JSONText { .object([("cause", .string(cause.rawValue)), ("reason", .string(reason))]) }
}

extension JobWait {
  /// In a table; nil for what the table says in other words.
  var sentence: String? {
    switch cause {
    case .held, .time: nil
    case .gate, .space, .output, .proxy, .other: "waits for \(awaited): \(reason)"
    case .network: "waits for the network"
    case .unfinished: "not complete: \(reason)"
    case .slots: "waits for a slot: \(reason)"
    case .worker, .order, .host, .priority: reason
    }
  }

  private var awaited: String {
    switch cause {
    case .space: "room on the disk"
    case .output: "the output root"
    case .other: "its worker"
    case .held, .time, .worker, .gate, .proxy, .network, .unfinished, .order, .host, .slots, .priority:
      "the \(cause.rawValue)"
    }
  }
}
