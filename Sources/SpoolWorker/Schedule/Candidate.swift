internal import Spool

/// A job that a worker found, and may run.
struct Candidate: Equatable {
  let name: FileName
  let origin: Directory
  /// Its mtime, in seconds since the epoch, or now where that is in the future.
  let modified: Int64
  /// It runs although its time has not come.
  var isForced = false
}

/// What a candidate's text says of where and when it is to run.
struct Peek: Equatable {
  /// Scheme, host and port of its first URL; nil for a job that opens no connection, such as a malformed one.
  let host: String?
  /// How many workers died in an attempt of it, where others are to go first.
  var deaths = 0
  /// Bytes that it still has to receive; nil where nobody knows, or it needs none.
  var needed: UInt64?
}

/// A candidate whose turn has come.
struct Choice: Equatable {
  let candidate: Candidate
  let peek: Peek

  /// Empty for a job that opens no connection.
  var host: String { peek.host ?? "" }
}
