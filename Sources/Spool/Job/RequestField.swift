/// How a key gets to its value in a request.
///
/// To write a job, every key looks for its value, and a list may have a million jobs. A key path copies the whole
/// request for each look, so a stored field is read at its offset.
struct RequestField<Value: Sendable>: Sendable {
  let get: @Sendable (JobRequest) -> Value
  let set: @Sendable (inout JobRequest, Value) -> Void

  init(
    get: @escaping @Sendable (JobRequest) -> Value, set: @escaping @Sendable (inout JobRequest, Value) -> Void
  ) {
    self.get = get
    self.set = set
  }

  init(_ path: WritableKeyPath<JobRequest, Value> & Sendable) {
    set = { request, value in request[keyPath: path] = value }
    // Without an offset it is computed (MemoryLayout.offset(of:)).
    guard let offset = MemoryLayout<JobRequest>.offset(of: path) else {
      get = { request in request[keyPath: path] }
      return
    }
    get = { request in withUnsafeBytes(of: request) { $0.load(fromByteOffset: offset, as: Value.self) } }
  }
}
