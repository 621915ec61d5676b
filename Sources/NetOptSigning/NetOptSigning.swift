// Request signing and the verifier will live here. The module is a product of its own from the start, because backend
// teams use it without the client: it depends on NetOptCore alone, and on neither libcurl nor the event loop.
